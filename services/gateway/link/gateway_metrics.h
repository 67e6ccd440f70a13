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
  // By service mode: large_alone counts the tokens generated in large-only service.
  prometheus::Counter& routed_tokens;
  prometheus::Counter& large_alone_tokens;
  prometheus::Counter& cancelled;
  prometheus::Counter& degraded_requests;
  prometheus::Gauge& link_up;
  prometheus::Counter& resubmitted;
  // Frames and chunks of the scheduler that were dropped: they belong to requests that have ended
  // (usual after a cancel or a stop string), start before or beyond the committed length, are of
  // another term, or found the link's mailbox full.
  prometheus::Counter& dropped_unknown;
  prometheus::Counter& dropped_duplicate;
  prometheus::Counter& dropped_gap;
  prometheus::Counter& dropped_term;
  prometheus::Counter& dropped_overflow;

 private:
  prometheus::Registry* const registry_;
};

}  // namespace tokenrouter
