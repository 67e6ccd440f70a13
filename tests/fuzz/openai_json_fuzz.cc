// Any bytes as a request body: parsed or refused with an error that can be sent, never a crash. The
// first byte picks the endpoint.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libs/status/check.h"
#include "services/gateway/openai/openai_json.h"
#include "services/gateway/openai/openai_reply.h"

namespace tokenrouter {
namespace {

void CheckError(const absl::Status& status) {
  const ApiError error = ToApiError(status);
  TR_CHECK(error.http_status == 400) << status;
  boost::system::error_code code;
  const boost::json::value body = boost::json::parse(ErrorJson(error), code);
  TR_CHECK(!code && body.is_object()) << "an error that is not JSON: " << status;
}

void CheckRequest(const absl::StatusOr<OpenAiRequest>& request) {
  if (!request.ok()) return CheckError(request.status());
  const GenerationRequest& generation = request->generation;
  TR_CHECK(generation.max_new_tokens.value_or(1) >= 1);
  TR_CHECK(generation.min_new_tokens >= 0);
  for (const TokenId id : generation.stop_token_ids) TR_CHECK(id >= 0);
  TR_CHECK(!request->include_usage || request->stream);
}

}  // namespace
}  // namespace tokenrouter

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenrouter;
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      CheckRequest(ParseOpenAiRequest(OpenAiEndpoint::kChat, body));
      break;
    case 1:
      CheckRequest(ParseOpenAiRequest(OpenAiEndpoint::kCompletions, body));
      break;
    case 2:
      if (const auto request = ParseTokenizeRequest(body); !request.ok()) {
        CheckError(request.status());
      }
      break;
    default:
      if (const auto request = ParseDetokenizeRequest(body); !request.ok()) {
        CheckError(request.status());
      }
  }
  return 0;
}
