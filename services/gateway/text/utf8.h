// UTF-8 that is safe to put into JSON. Pure and thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tokenrouter {

// A copy in which every byte that is not part of well-formed UTF-8 became U+FFFD.
std::string ToValidUtf8(std::string_view text);

// The longest prefix of at most `limit` bytes that does not cut a character; text must be valid.
std::string_view Utf8Prefix(std::string_view text, size_t limit);

}  // namespace tokenrouter
