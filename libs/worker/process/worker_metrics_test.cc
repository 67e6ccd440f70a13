#include "libs/worker/process/worker_metrics.h"

#include "libs/routing/wire_types.h"
#include "libs/status/status_matchers.h"
#include "libs/synthetic/synthetic_engine.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

TEST(WorkerMetricsTest, CountsWhatTheCoreDid) {
  SyntheticEngine engine({.total_blocks = 100});
  WorkerCore core({.role = Role::kSmall}, &engine);
  prometheus::Registry registry;
  WorkerMetrics metrics(&registry, Role::kSmall);
  wire::CommandFrame frame;
  frame.set_term(1);
  frame.mutable_attached();
  wire::Open& open = *frame.add_opens();
  open.set_request(1);
  open.mutable_spec()->set_request_id("a");
  open.mutable_spec()->set_prompt_length(4);
  open.mutable_spec()->mutable_routing()->set_algorithm("never");
  open.mutable_spec()->mutable_stop()->set_max_new_tokens(9);
  for (const TokenId id : {1, 2, 3, 4}) open.add_ids(id);
  *open.mutable_grant()->mutable_window() = ToWire(Window::OwnRule());
  core.Apply(frame, absl::UnixEpoch());
  for (int i = 0; i < 2; ++i) {
    std::optional<PlannedStep> step = core.Plan(absl::UnixEpoch());
    ASSERT_TRUE(step.has_value());
    ASSERT_THAT(core.Execute(&*step), IsOk());
    metrics.ObserveStep(core.Complete(*std::move(step), absl::UnixEpoch() + absl::Seconds(1)));
    metrics.ObserveCore(core, 100);
  }
  const std::string text = ExposeText(registry);
  for (const char* line :
       {"tokenrouter_worker_tokens_total{role=\"small\"} 2",
        "tokenrouter_worker_steps_total{role=\"small\"} 2",
        "tokenrouter_worker_catch_up_ids_total{role=\"small\"} 3",
        "tokenrouter_worker_step_seconds_sum{role=\"small\"} 2",
        "tokenrouter_worker_rows_per_step_count{role=\"small\"} 2",
        "tokenrouter_worker_new_ids_per_step_sum{role=\"small\"} 5",
        "tokenrouter_worker_token_entropy_count{role=\"small\"} 2",
        "tokenrouter_worker_deferrals_total{outcome=\"immediate\",role=\"small\"} 2",
        "tokenrouter_worker_deferrals_total{outcome=\"bound\",role=\"small\"} 0",
        "tokenrouter_worker_kv_blocks{role=\"small\",state=\"used\"} 1",
        "tokenrouter_worker_kv_blocks{role=\"small\",state=\"free\"} 99",
        "tokenrouter_worker_cached_blocks{role=\"small\"} 0",
        "tokenrouter_worker_prefix_hit_tokens_total{role=\"small\"} 0",
        "tokenrouter_worker_prefix_lookup_tokens_total{role=\"small\"} 4",
        "tokenrouter_worker_prefix_evictions_total{role=\"small\"} 0",
        "tokenrouter_worker_sequences{role=\"small\",state=\"ready\"} 1",
        "tokenrouter_worker_num_requests_running{role=\"small\"} 1",
        "tokenrouter_worker_num_requests_waiting{role=\"small\"} 0",
        "tokenrouter_worker_kv_cache_usage_perc{role=\"small\"} 0.01"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace tokenrouter
