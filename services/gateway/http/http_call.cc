#include "services/gateway/http/http_call.h"

#include "absl/strings/match.h"

namespace tokenrouter {

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (absl::EqualsIgnoreCase(absl::string_view(key), {name.data(), name.size()})) return value;
  }
  return {};
}

}  // namespace tokenrouter
