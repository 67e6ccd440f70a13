// Copies bytes as UTF-8, with U+FFFD in place of what is not. Each longest beginning of a character
// that cannot be completed becomes one U+FFFD, and so does any other stray byte (the practice of
// the Unicode standard and of the WHATWG decoder).
// Threads: pure function.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tokenrouter {

// The longest beginning of a character that can still be completed.
inline constexpr size_t kMaxIncompleteUtf8Bytes = 3;

// Appends the text of `bytes` to `out` and returns how many bytes were used: all of them but a
// beginning of a character at the end. With `is_end` that one is repaired as well.
size_t AppendRepairedUtf8(std::string_view bytes, bool is_end, std::string& out);

}  // namespace tokenrouter
