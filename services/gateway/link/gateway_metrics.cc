#include "services/gateway/link/gateway_metrics.h"

#include "libs/telemetry/metrics.h"

namespace tokenrouter {
namespace {

std::string Name(const char* name) { return std::string("tokenrouter_gateway_") + name; }

prometheus::Counter& AddDropped(prometheus::Registry* registry, const char* reason) {
  return AddCounter(registry, Name("dropped_chunks_total"),
                    "Token chunks of the scheduler that were dropped, by reason",
                    {{"reason", reason}});
}

prometheus::Counter& AddServed(prometheus::Registry* registry, const char* mode) {
  return AddCounter(registry, Name("served_tokens_total"),
                    "Tokens given to clients, by the service mode in which they were generated",
                    {{"mode", mode}});
}

}  // namespace

GatewayMetrics::GatewayMetrics(prometheus::Registry* registry)
    : requests_in_flight(
          AddGauge(registry, Name("requests_in_flight"), "Generations that have not ended")),
      connections(AddGauge(registry, Name("http_connections"), "Open HTTP connections")),
      time_to_first_token(AddHistogram(registry, Name("time_to_first_token_seconds"),
                                       "From the request to its first token", LatencyBuckets())),
      inter_token_latency(AddHistogram(registry, Name("inter_token_latency_seconds"),
                                       "Between two tokens of a request", LatencyBuckets())),
      e2e_request_latency(AddHistogram(registry, Name("e2e_request_latency_seconds"),
                                       "From the request to its last token", LatencyBuckets())),
      prompt_tokens(AddCounter(registry, Name("prompt_tokens_total"), "Tokens of prompts")),
      small_tokens(AddCounter(registry, Name("generation_tokens_total"), "Tokens given to clients",
                              {{"author", "small"}})),
      large_tokens(AddCounter(registry, Name("generation_tokens_total"), "Tokens given to clients",
                              {{"author", "large"}})),
      routed_tokens(AddServed(registry, "routed")),
      large_alone_tokens(AddServed(registry, "large_alone")),
      cancelled(AddCounter(registry, Name("cancelled_total"),
                           "Generations cancelled because the client left or the drain ended")),
      degraded_requests(AddCounter(registry, Name("degraded_requests_total"),
                                   "Generations in which a declared policy replaced a model")),
      link_up(AddGauge(registry, Name("link_up"), "1 while the scheduler's stream is open")),
      resubmitted(AddCounter(registry, Name("resubmitted_total"),
                             "Requests submitted again after the loss of the stream")),
      dropped_unknown(AddDropped(registry, "unknown")),
      dropped_duplicate(AddDropped(registry, "duplicate")),
      dropped_gap(AddDropped(registry, "gap")),
      dropped_term(AddDropped(registry, "term")),
      dropped_overflow(AddDropped(registry, "overflow")),
      registry_(registry) {}

void GatewayMetrics::CountRequest(const std::string& endpoint, int code) {
  AddCounter(registry_, Name("requests_total"), "HTTP and gRPC requests by outcome",
             {{"endpoint", endpoint}, {"code", std::to_string(code)}})
      .Increment();
}

}  // namespace tokenrouter
