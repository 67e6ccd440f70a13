#include "services/scheduler/server/scheduler_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/batching_model/policy_name.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr int32_t kMaxRequests = 1 << 20;
constexpr int64_t kMinIds = 1024;  // One request of a short context.
constexpr int64_t kMaxIds = int64_t{1} << 32;
constexpr int32_t kMaxWaitMs = 10 * 60 * 1000;
constexpr int32_t kMaxCredit = 4096;
constexpr int32_t kMinCredit = 2;  // With less a writer would be credit-blocked at every token.

LargePoolGone LargePoolGoneOf(const std::string& name) {
  if (name == "fail") return LargePoolGone::kFail;
  if (name == "small_only") return LargePoolGone::kSmallOnly;
  return LargePoolGone::kWait;
}

std::optional<ServiceMode> ForcedModeOf(const std::string& name) {
  if (name == "routed") return ServiceMode::kRouted;
  if (name == "large_alone") return ServiceMode::kLargeAlone;
  return std::nullopt;
}

LargePrefill PrefillOf(const std::string& name) {
  if (name == "lazy") return LargePrefill::kLazy;
  if (name == "idle") return LargePrefill::kIdle;
  if (name == "eager") return LargePrefill::kEager;
  return LargePrefill::kAuto;
}

// Flags of batching; with these defaults no row waits.
struct BatchingFlags {
  std::string policy = "model";
  int32_t m_small = 1;
  int32_t m_large = 1;
  double wait_small_ms = 0;
  double wait_large_ms = 0;
  int32_t defer_cap_ms = 1000;
};

void AddBatching(BatchingFlags* flags, int32_t* shared_threshold, Settings* settings) {
  std::vector<std::string> names;
  for (const auto kind : AllPolicyKinds()) names.emplace_back(PolicyName(kind));
  settings->AddChoice("batching", &flags->policy, names,
                      "which rows wait for a fuller batch; model: decided from measured steps");
  settings->Add("m_small", &flags->m_small, 1, kMaxRequests,
                "static: rows that a small worker waits for");
  settings->Add("m_large", &flags->m_large, 1, kMaxRequests,
                "static: rows that a large worker, or its lease on a shared device, waits for");
  settings->Add("wait_small_ms", &flags->wait_small_ms, 0, kMaxWaitMs,
                "fixed_wait: how long a small worker's oldest row waits");
  settings->Add("wait_large_ms", &flags->wait_large_ms, 0, kMaxWaitMs,
                "fixed_wait: how long a large worker's oldest row waits");
  settings->Add("defer_cap_ms", &flags->defer_cap_ms, 1, kMaxWaitMs,
                "no row waits longer for a fuller batch");
  settings->Add("shared_threshold", shared_threshold, 0, kMaxRequests,
                "model: rows ready for the large model before it gets a shared device; 0: as "
                "planned");
}

absl::Status Needs(bool given, const BatchingFlags& flags, absl::string_view policy,
                   absl::string_view names) {
  if (!given || flags.policy == policy) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(names,
                                                 " have no effect under --batching=", flags.policy,
                                                 "; drop them or set --batching=", policy));
}

absl::StatusOr<BatchingPolicy> PolicyOf(const BatchingFlags& flags, int32_t shared_threshold) {
  TR_RETURN_IF_ERROR(
      Needs(flags.m_small > 1 || flags.m_large > 1, flags, "static", "--m_small and --m_large"));
  TR_RETURN_IF_ERROR(Needs(flags.wait_small_ms > 0 || flags.wait_large_ms > 0, flags, "fixed_wait",
                           "--wait_small_ms and --wait_large_ms"));
  TR_RETURN_IF_ERROR(Needs(shared_threshold > 0, flags, "model", "values of --shared_threshold"));
  BatchingPolicy policy;
  TR_ASSIGN_OR_RETURN(policy.kind, ParsePolicyKind(flags.policy));
  policy.m_small = flags.m_small;
  policy.m_large = flags.m_large;
  policy.wait_small_ms = flags.wait_small_ms;
  policy.wait_large_ms = flags.wait_large_ms;
  const double longest = std::max(flags.wait_small_ms, flags.wait_large_ms);
  if (longest > flags.defer_cap_ms) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a fixed wait of ", longest, " ms is longer than --defer_cap_ms=", flags.defer_cap_ms,
        ", which would end it; raise the cap or lower the wait"));
  }
  return policy;
}

}  // namespace

absl::StatusOr<std::optional<SchedulerOptions>> ParseSchedulerOptions(int argc,
                                                                      const char* const* argv) {
  SchedulerOptions options;
  CoreOptions& core = options.core;
  std::string pool_gone = "wait";
  std::string mode = "auto";
  std::string prefill = "auto";
  auto evict_overdue_ms = static_cast<int32_t>(absl::ToInt64Milliseconds(core.evict_overdue_after));
  auto wait_ms = static_cast<int32_t>(absl::ToInt64Milliseconds(core.no_large_worker_timeout));
  auto drain_ms = static_cast<int32_t>(absl::ToInt64Milliseconds(options.drain));
  BatchingFlags batching;
  Settings settings("scheduler", "Assigns requests to the small and large workers of a pair");
  settings.Add("listen", &options.listen, "host:port of the gRPC server");
  settings.Add("admin", &options.admin, "host:port of /metrics, /livez and /readyz");
  settings.AddChoice("log_level", &options.log_level, {"debug", "info", "warning", "error"},
                     "least severe line to log");
  settings.Add("max_requests", &core.max_requests, 1, kMaxRequests, "requests in flight");
  settings.Add("max_ids", &core.max_ids, kMinIds, kMaxIds,
               "prompt + max_new_tokens of all requests in flight; 20 bytes of memory each");
  settings.Add("max_queued", &core.max_queued, 0, kMaxRequests,
               "new requests that may wait for a worker with capacity");
  settings.AddChoice(
      "large_pool_gone", &pool_gone, {"fail", "small_only", "wait"},
      "what happens to requests that need the large model while no large worker is attached");
  settings.AddChoice(
      "service_mode", &mode, {"auto", "routed", "large_alone"},
      "how requests are served that do not choose a mode themselves; auto: the faster mode");
  settings.Add("wait_ms", &wait_ms, 0, kMaxWaitMs,
               "how long a request waits for a pool without any worker");
  settings.AddChoice(
      "large_prefill", &prefill, {"auto", "lazy", "idle", "eager"},
      "when the large side is opened and prefilled: lazy: at its first decode grant; "
      "idle: at admission, prefilled in the background when no row is ready; eager: "
      "prefilled at once; auto: idle on a dedicated device, else lazy");
  settings.Add("place_wait_ms", &evict_overdue_ms, 0, kMaxWaitMs,
               "how long a request waits for KV of the large pool before it may evict a request "
               "whose residency amortised its prefill");
  settings.Add("rebuild_share", &core.rebuild_share, 0.001, 1.0,
               "share of its time on the large model that a request may spend on recomputing its "
               "history after an eviction");
  settings.Add("credit", &core.credit, kMinCredit, kMaxCredit,
               "tokens that a writer may be ahead of its client");
  AddBatching(&batching, &core.shared_threshold, &settings);
  settings.Add("drain_ms", &drain_ms, 0, kMaxWaitMs, "time for requests in flight after SIGTERM");
  TR_ASSIGN_OR_RETURN(const bool run, settings.Parse(argc, argv));
  if (!run) return std::nullopt;
  TR_ASSIGN_OR_RETURN(core.batching, PolicyOf(batching, core.shared_threshold));
  core.defer_cap = absl::Milliseconds(batching.defer_cap_ms);
  core.large_pool_gone = LargePoolGoneOf(pool_gone);
  core.forced_mode = ForcedModeOf(mode);
  core.large_prefill = PrefillOf(prefill);
  core.evict_overdue_after = absl::Milliseconds(evict_overdue_ms);
  core.no_large_worker_timeout = core.no_small_worker_timeout = absl::Milliseconds(wait_ms);
  core.string_stop_credit = std::min(core.string_stop_credit, core.credit);
  options.drain = absl::Milliseconds(drain_ms);
  return options;
}

}  // namespace tokenrouter
