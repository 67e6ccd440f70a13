// When the rows that wait for a large worker on a dedicated device may run. Pure: a snapshot in,
// and either all rows are released now or a time until which they wait comes out. On a shared
// device rows are released at once and the lease decides (lease_policy.h).
//   greedy, longest queue  at once
//   static                 with m_large rows, or when the small side has no rows to run
//   fixed wait             once the oldest row has waited wait_large_ms
//   model                  delay balance against the small steps (delay_balance.h); a small step
//                          that is overdue is no longer awaited
// Except under greedy, rows wait while the large worker itself runs a step, so that rows which
// arrive meanwhile join them. The decision is taken one handoff latency before the earliest end of
// that step and takes into account the small step that its rows will start. A worker that goes on
// by itself when the step ends (because rows continue decoding or background prefill is left) gets
// its rows at once: it would not wait for them.
#pragma once

#include <cstdint>
#include <span>

#include "absl/time/time.h"
#include "libs/batching_model/simulator.h"
#include "libs/batching_model/step_time_estimator.h"
#include "libs/batching_model/wait_outcome.h"
#include "services/scheduler/request/wait_bound.h"
#include "services/scheduler/workers/running_step.h"

namespace tokenrouter {

// What governs a pair's waits.
struct ReleaseRule {
  BatchingPolicy policy;
  // Null or without observations: no row waits for a step of that side.
  const StepTimeEstimator* small = nullptr;
  const StepTimeEstimator* large = nullptr;
  double routed = 0;  // Mean probability that a small row hands off to the large side.
  // Its lower confidence bound, because overestimating it costs more than it gains.
  double routed_lower = 0;
  double returned = 1;  // Mean probability that a large row hands off to the small side.
  // The handoff latency: from a step's end until its row can run elsewhere.
  absl::Duration handoff_latency = absl::ZeroDuration();
};

struct ReleaseSnapshot {
  struct Row {
    uint64_t request = 0;
    absl::Time since;
    int64_t uncomputed_ids = 0;  // Uncomputed tokens of the row.
    WaitBound bound;
  };
  absl::Time now;
  std::span<const Row> waiting;        // At least one.
  RunningStep own;                     // The running step of the large worker.
  int64_t background_ids = 0;          // Uncomputed ids left for its background prefill.
  std::span<const RunningStep> small;  // Running steps of the pair's small workers.
  int32_t busy_small = 0;              // Rows ready or running on those workers.
};

struct ReleaseDecision {
  bool release = false;
  WaitOutcome outcome = WaitOutcome::kImmediate;  // Why; valid only with `release`.
  absl::Time until = absl::InfiniteFuture();      // Without `release`: when to decide again.
};

// Whether rows ever wait under the policy. If not, no snapshot is needed.
bool MayWait(const BatchingPolicy& policy);

ReleaseDecision DecideRelease(const ReleaseSnapshot& snapshot, const ReleaseRule& rule);

}  // namespace tokenrouter
