// Every metric of the gateway, tokenrouter_gateway_*. Labels are bounded: endpoint, code, author,
// mode, reason. Ownership: the registry must outlive it. Threads: thread-safe. Units: seconds and
// tokens.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

namespace tokenrouter {

class GatewayMetrics {
 public:
  explicit GatewayMetrics(prometheus::Registry* registry);

  // `code` is the HTTP status; 499 means that the client left before there was one.
  void CountRequest(const std::string& endpoint, int code);

  prometheus::Gauge& requests_in_flight;
  prometheus::Gauge& connections;
  prometheus::Histogram& time_to_first_token;
  prometheus::Histogram& inter_token_latency;
  prometheus::Histogram& e2e_request_latency;
  prometheus::Counter& prompt_tokens;
  prometheus::Counter& small_tokens;
  prometheus::Counter& large_tokens;
  // By service mode: large-alone ones are those that the large model wrote while it wrote all.
  prometheus::Counter& routed_tokens;
  prometheus::Counter& large_alone_tokens;
  prometheus::Counter& cancelled;
  prometheus::Counter& degraded_requests;
  prometheus::Gauge& link_up;
  prometheus::Counter& resubmitted;
  // Frames and chunks of the scheduler that were not taken: of requests that have ended (usual
  // after a cancel or a stop string), before or beyond what is committed, of another term, or
  // frames that the link's mailbox had no room for.
  prometheus::Counter& dropped_unknown;
  prometheus::Counter& dropped_duplicate;
  prometheus::Counter& dropped_gap;
  prometheus::Counter& dropped_term;
  prometheus::Counter& dropped_overflow;

 private:
  prometheus::Registry* const registry_;
};

}  // namespace tokenrouter
