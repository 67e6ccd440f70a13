// A script of frames out of fuzzer bytes: records of {kind, length low, length high, length bytes}.
// A record that is cut short ends the script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tokenrouter {

inline constexpr size_t kMaxRecords = 64;

// Calls visit(kind, bytes) for each record.
template <typename Visit>
void ForEachRecord(const uint8_t* data, size_t size, const Visit& visit) {
  size_t at = 0;
  for (size_t count = 0; count < kMaxRecords && at + 3 <= size; ++count) {
    const size_t length = data[at + 1] | (static_cast<size_t>(data[at + 2]) << 8);
    if (at + 3 + length > size) return;
    visit(data[at], std::string_view(reinterpret_cast<const char*>(data + at + 3), length));
    at += 3 + length;
  }
}

}  // namespace tokenrouter
