// The requests of the clients of soak_bench. Threads: none, all functions are pure.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/chat.h"

namespace tokenrouter {

struct SoakRequest {
  ChatRequest chat;
  // The tokens are promised to be the same each time: the request sets `service_mode`, and one
  // numerics class serves it.
  bool repeatable = false;
  bool may_stream_only = false;  // Too long for an answer that comes as a whole.
};

// The number of different requests that recur.
inline constexpr int kSoakRequests = 48;
// Prompts of 60 to 1,500 ids; every algorithm; greedy and sampled; some with stop strings or in a
// service mode. The same for the same index. REQUIRES: 0 <= index < kSoakRequests.
SoakRequest RecurringRequest(int index);
// A prompt that starts like no other number's.
SoakRequest UniqueRequest(uint64_t number);

struct BadRequest {
  std::string body;
  int code;  // What the gateway must answer.
};
BadRequest BadRequestOf(uint64_t number);

}  // namespace tokenrouter
