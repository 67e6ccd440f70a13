#include "tests/bench/measure/timed_stream.h"

#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "libs/status/status_macros.h"
#include "tests/support/http_client.h"

namespace tokenrouter {

absl::StatusOr<TimedStream> FollowStream(int http_port, const ChatRequest& request,
                                         const std::atomic<bool>* stop) {
  TimedStream timed;
  timed.sent = absl::Now();
  TR_ASSIGN_OR_RETURN(const auto stream, EventStream::Open(http_port, "/v1/chat/completions",
                                                           ChatBody(request, /*stream=*/true)));
  if (stream->code() != 200) return absl::InternalError("the gateway refused the request");
  while (stop == nullptr || !*stop) {
    TR_ASSIGN_OR_RETURN(const std::optional<std::string> event, stream->Next());
    if (!event.has_value()) return absl::UnavailableError("the stream ended early");
    if (*event == "[DONE]") break;
    TR_RETURN_IF_ERROR(AddEvent(*event, &timed.answer));
    timed.tokens.resize(timed.answer.ids.size(), absl::Now());
  }
  return timed;
}

}  // namespace tokenrouter
