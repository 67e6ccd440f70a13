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
  double decode_tokens_per_s =
      0;  // While every client was decoding: from the last first token to the first last one.
  std::vector<double> ttft_ms;  // One per client.
  std::vector<double> tpot_ms;  // Mean time per token after the first, one per client.
};

// The first error of any client.
absl::StatusOr<Burst> RunBurst(const BurstOptions& options);

}  // namespace tokenrouter
