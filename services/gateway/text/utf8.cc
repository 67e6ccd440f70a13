#include "services/gateway/text/utf8.h"

#include <cstdint>

#include "libs/text/utf8_repair.h"

namespace tokenrouter {

std::string ToValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  AppendRepairedUtf8(text, /*is_end=*/true, valid);
  return valid;
}

std::string_view Utf8Prefix(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<uint8_t>(text[limit]) & 0xC0) == 0x80)
    --limit;  // Continuation bytes.
  return text.substr(0, limit);
}

}  // namespace tokenrouter
