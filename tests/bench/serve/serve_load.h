// One burst of streaming chat requests against a gateway: `clients` at once, each of which sends
// its requests one after the other.
// Threads: Run starts one thread per client and joins them.
#pragma once

#include <boost/json/object.hpp>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

struct BurstOptions {
  int http_port = 0;
  int clients = 1;
  int requests = 1;  // Of each client.
  int new_tokens = 96;
  int first_prompt = 0;  // Request j of client i has prompt number first_prompt + i + j * clients.
  boost::json::object routing;
};

struct Burst {
  int tokens = 0;
  int large_tokens = 0;
  double seconds = 0;  // From the first request sent to the last token.
  // The tokens that arrived while every client was only decoding, so that no prompt was prefilled
  // in either model. A client decodes from its first token of the large model, or its first token
  // where the large model generates none of the answer, to the last one of that answer. None: they
  // never all did.
  int decode_tokens = 0;
  int decode_large_tokens = 0;
  double decode_seconds = 0;
  std::vector<double> ttft_ms;  // One per request.
  std::vector<double> tpot_ms;  // Mean time per token after the first, one per request.
};

// The first error of any client.
absl::StatusOr<Burst> RunBurst(const BurstOptions& options);

}  // namespace tokenrouter
