// Requests and answers of /v1/chat/completions as tests see them.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/http_client.h"

namespace tokenrouter {

struct ChatRequest {
  std::string prompt = "Say something.";
  boost::json::object routing = {};  // {"algorithm": ..., ...}
  int max_tokens = 32;
  double temperature = 0;
  int64_t seed = 1;
  bool ignore_eos = true;
  boost::json::object more = {};  // Added to the body as it is.
};

struct ChatAnswer {
  std::string text;
  std::vector<int64_t> ids;
  std::vector<std::string> authors;  // "small" or "large", one per id.
  std::string finish_reason;
  boost::json::object usage;

  int CountBy(const std::string& author) const;
};

std::string ChatBody(const ChatRequest& request, bool stream);

// Both fail with the HTTP code and the body when it is not 200.
absl::StatusOr<ChatAnswer> Chat(int http_port, const ChatRequest& request,
                                absl::Duration timeout = kHttpTimeout);
absl::StatusOr<ChatAnswer> ChatStreaming(int http_port, const ChatRequest& request);

// Adds one streamed event to the answer; INTERNAL when the event carries an error object.
absl::Status AddEvent(const std::string& event, ChatAnswer* answer);

}  // namespace tokenrouter
