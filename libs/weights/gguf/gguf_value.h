// One metadata value of a GGUF file, widened: every integer type becomes int64_t, both float types
// become double. Arrays are flat; booleans in arrays are the integers 0 and 1.
// Ownership: strings point into the mapped file.
// Errors: INVALID_ARGUMENT naming file, key and limit for unknown types, nested arrays, sizes
// beyond the limits below, unsigned values above 2^63-1 and truncation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/weights/gguf/gguf_cursor.h"

namespace tokenrouter {

inline constexpr uint64_t kMaxGgufArrayElements = uint64_t{1} << 24;
inline constexpr uint64_t kMaxGgufStringBytes = uint64_t{16} << 20;

using GgufValue = std::variant<bool, int64_t, double, std::string_view, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string_view>>;

// Reads a type tag and the value after it. `key` is only for messages.
absl::StatusOr<GgufValue> ReadGgufValue(GgufCursor& cursor, const std::string& key);

// "string", "array of integers", ...: what a value is, for messages.
std::string GgufValueKind(const GgufValue& value);

}  // namespace tokenrouter
