// One burst of streaming chat requests against a gateway: `clients` at once, one request each.
// Threads: Run starts one thread per client and joins them.
#pragma once

#include <boost/json/object.hpp>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

struct BurstOptions {
  int http_port = 0;
  int clients = 1;
  int new_tokens = 96;
  int first_prompt = 0;  // Client i uses prompt number first_prompt + i.
  boost::json::object routing;
};

struct Burst {
  int tokens = 0;
  int large_tokens = 0;
  double seconds = 0;  // From the first request sent to the last token.
  // What came while every client only wrote: nobody had a prompt to read any more, in either model.
  // It begins when the last client has a token of the large model, or its first token where the
  // large model writes none of its answer, and ends with the first answer. None: it began too late.
  int decode_tokens = 0;
  int decode_large_tokens = 0;
  double decode_seconds = 0;
  std::vector<double> ttft_ms;  // One per client.
  std::vector<double> tpot_ms;  // Mean time per token after the first, one per client.
};

// The first error of any client.
absl::StatusOr<Burst> RunBurst(const BurstOptions& options);

}  // namespace tokenrouter
