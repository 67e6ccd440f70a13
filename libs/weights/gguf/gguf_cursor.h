// GgufCursor reads little-endian fields of a GGUF header one after another and never past the end.
// Ownership: views bytes that it does not own; strings it returns point into them.
// Threads: not thread-safe; lives inside one parse.
// Errors: INVALID_ARGUMENT "<file>: truncated while reading <what> at byte <offset>".
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, std::string path)
      : bytes_(bytes), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }

  template <typename T>
  absl::StatusOr<T> Read(const std::string& what) {
    static_assert(std::is_arithmetic_v<T>);
    if (remaining() < sizeof(T)) return Truncated(what);
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // A 64-bit length and that many bytes, at most `limit` of them.
  absl::StatusOr<std::string_view> ReadString(const std::string& what, uint64_t limit) {
    TR_ASSIGN_OR_RETURN(const uint64_t length, Read<uint64_t>(what));
    if (length > limit) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": ", what, " is ", length, " bytes long, the limit is ", limit));
    }
    if (length > remaining()) return Truncated(what);
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + offset_, length);
    offset_ += length;
    return text;
  }

 private:
  absl::Status Truncated(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": truncated while reading ", what,
                                                   " at byte ", offset_, " of ", bytes_.size()));
  }

  const std::span<const std::byte> bytes_;
  const std::string path_;
  size_t offset_ = 0;
};

}  // namespace tokenrouter
