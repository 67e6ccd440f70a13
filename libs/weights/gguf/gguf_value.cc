#include "libs/weights/gguf/gguf_value.h"

#include <limits>

namespace tokenrouter {
namespace {

// Type tags of the format.
enum GgufTag : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// In these functions `what` is how messages call the value: "metadata '<key>'".
template <typename T>
absl::StatusOr<int64_t> ReadAs(GgufCursor& cursor, const std::string& what) {
  TR_ASSIGN_OR_RETURN(const T value, cursor.Read<T>(what));
  return static_cast<int64_t>(value);
}

absl::StatusOr<int64_t> ReadUnsigned64(GgufCursor& cursor, const std::string& what) {
  TR_ASSIGN_OR_RETURN(const uint64_t value, cursor.Read<uint64_t>(what));
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat(cursor.path(), ": ", what, " is ", value, ", the limit is 2^63-1"));
  }
  return static_cast<int64_t>(value);
}

absl::StatusOr<int64_t> ReadInteger(GgufCursor& cursor, uint32_t tag, const std::string& what) {
  switch (tag) {
    case kU8:
    case kBool:
      return ReadAs<uint8_t>(cursor, what);
    case kI8:
      return ReadAs<int8_t>(cursor, what);
    case kU16:
      return ReadAs<uint16_t>(cursor, what);
    case kI16:
      return ReadAs<int16_t>(cursor, what);
    case kU32:
      return ReadAs<uint32_t>(cursor, what);
    case kI32:
      return ReadAs<int32_t>(cursor, what);
    case kU64:
      return ReadUnsigned64(cursor, what);
    case kI64:
      return ReadAs<int64_t>(cursor, what);
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          cursor.path(), ": ", what, " has unknown type ", tag, " (known are 0 to 12)"));
  }
}

absl::StatusOr<double> ReadFloating(GgufCursor& cursor, uint32_t tag, const std::string& what) {
  if (tag == kF64) return cursor.Read<double>(what);
  TR_ASSIGN_OR_RETURN(const float value, cursor.Read<float>(what));
  return static_cast<double>(value);
}

// Smallest number of bytes one element can take, so that a count can be refused before any
// memory is reserved for it.
uint64_t SmallestElementBytes(uint32_t tag) {
  switch (tag) {
    case kU16:
    case kI16:
      return 2;
    case kU32:
    case kI32:
    case kF32:
      return 4;
    case kU64:
    case kI64:
    case kF64:
    case kString:
      return 8;
    default:
      return 1;
  }
}

absl::StatusOr<GgufValue> ReadArray(GgufCursor& cursor, const std::string& what) {
  TR_ASSIGN_OR_RETURN(const uint32_t tag, cursor.Read<uint32_t>(what));
  TR_ASSIGN_OR_RETURN(const uint64_t count, cursor.Read<uint64_t>(what));
  if (tag == kArray) {
    return absl::InvalidArgumentError(
        absl::StrCat(cursor.path(), ": ", what, " is an array of arrays: not supported"));
  }
  if (count > kMaxGgufArrayElements) {
    return absl::InvalidArgumentError(absl::StrCat(cursor.path(), ": ", what, " has ", count,
                                                   " elements, the limit is ",
                                                   kMaxGgufArrayElements));
  }
  if (count > cursor.remaining() / SmallestElementBytes(tag)) {
    return absl::InvalidArgumentError(absl::StrCat(cursor.path(), ": truncated: ", what, " has ",
                                                   count, " elements, but only ",
                                                   cursor.remaining(), " bytes follow"));
  }
  if (tag == kString) {
    std::vector<std::string_view> strings(count);
    for (std::string_view& text : strings) {
      TR_ASSIGN_OR_RETURN(text, cursor.ReadString(what, kMaxGgufStringBytes));
    }
    return GgufValue(std::move(strings));
  }
  if (tag == kF32 || tag == kF64) {
    std::vector<double> numbers(count);
    for (double& number : numbers) {
      TR_ASSIGN_OR_RETURN(number, ReadFloating(cursor, tag, what));
    }
    return GgufValue(std::move(numbers));
  }
  std::vector<int64_t> integers(count);
  for (int64_t& integer : integers) {
    TR_ASSIGN_OR_RETURN(integer, ReadInteger(cursor, tag, what));
  }
  return GgufValue(std::move(integers));
}

}  // namespace

absl::StatusOr<GgufValue> ReadGgufValue(GgufCursor& cursor, const std::string& key) {
  const std::string what = absl::StrCat("metadata '", key, "'");
  TR_ASSIGN_OR_RETURN(const uint32_t tag, cursor.Read<uint32_t>(what));
  switch (tag) {
    case kString: {
      TR_ASSIGN_OR_RETURN(const std::string_view text,
                          cursor.ReadString(what, kMaxGgufStringBytes));
      return GgufValue(text);
    }
    case kArray:
      return ReadArray(cursor, what);
    case kF32:
    case kF64: {
      TR_ASSIGN_OR_RETURN(const double number, ReadFloating(cursor, tag, what));
      return GgufValue(number);
    }
    case kBool: {
      TR_ASSIGN_OR_RETURN(const uint8_t flag, cursor.Read<uint8_t>(what));
      return GgufValue(flag != 0);
    }
    default: {
      TR_ASSIGN_OR_RETURN(const int64_t integer, ReadInteger(cursor, tag, what));
      return GgufValue(integer);
    }
  }
}

std::string GgufValueKind(const GgufValue& value) {
  // In the order of the variant's alternatives.
  static constexpr const char* kKinds[] = {
      "boolean",           "integer",         "float",           "string",
      "array of integers", "array of floats", "array of strings"};
  return kKinds[value.index()];
}

}  // namespace tokenrouter
