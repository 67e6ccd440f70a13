// One streamed chat request, with the time of every token. Threads: the caller's.
#pragma once

#include <atomic>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/chat.h"

namespace tokenrouter {

struct TimedStream {
  ChatAnswer answer;
  absl::Time sent;
  std::vector<absl::Time> tokens;  // When each token arrived.

  // From the request to the first token. REQUIRES: a token arrived.
  double FirstMs() const { return absl::ToDoubleMilliseconds(tokens.front() - sent); }
  int64_t PromptTokens() const { return answer.usage.at("prompt_tokens").to_number<int64_t>(); }
};

// Until the end, or until `stop` is set, after which there is no usage.
absl::StatusOr<TimedStream> FollowStream(int http_port, const ChatRequest& request,
                                         const std::atomic<bool>* stop = nullptr);

}  // namespace tokenrouter
