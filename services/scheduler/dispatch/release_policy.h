// When the rows that wait for a large worker with a device of its own may run. Pure: a snapshot in,
// all of them now or a time until which they wait. On a device that both sides share rows are
// released at once and turns decide (lease_policy.h).
//   greedy, longest queue  at once
//   static                 with m_large rows, or when the small side has nothing
//   fixed wait             once the oldest row has waited wait_large_ms
//   model                  delay balance against the small steps that run (batching model, 5a)
// Except under greedy rows wait while the large worker itself runs a step, so that whatever comes
// meanwhile joins them; the decision is taken one hop before the least that this step takes and
// foresees the small step that its rows will start. A worker that goes on by itself when the step
// ends (rows that write on, histories read ahead) gets its rows at once: it would not wait for
// them.
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
  // Null or without observations: nobody waits for a step of that side.
  const StepTimeEstimator* small = nullptr;
  const StepTimeEstimator* large = nullptr;
  double routed = 0;  // Mean probability that a small row leaves for the large side.
  // Lower confidence bound of the same: overestimating it costs more than it gains.
  double routed_lower = 0;
  double returned = 1;                        // Mean probability that a large row goes back.
  absl::Duration hop = absl::ZeroDuration();  // From a step's end until its row can run elsewhere.
};

struct ReleaseSnapshot {
  struct Row {
    uint64_t request = 0;
    absl::Time since;
    int64_t unseen_ids = 0;  // That the worker must read before it can answer.
    WaitBound bound;
  };
  absl::Time now;
  std::span<const Row> waiting;        // At least one.
  RunningStep own;                     // Of the large worker.
  int64_t background_ids = 0;          // Of rows without a turn that it reads whenever it can.
  std::span<const RunningStep> small;  // Steps that the pair's small workers run.
  int32_t busy_small = 0;              // Rows ready or running there.
  // Where the present wait for a small step ends whatever happens; infinite: none is armed.
  absl::Time armed = absl::InfiniteFuture();
};

struct ReleaseDecision {
  bool release = false;
  WaitOutcome outcome = WaitOutcome::kImmediate;  // Why; means something with `release`.
  absl::Time until = absl::InfiniteFuture();      // Otherwise: decide again then.
  absl::Time armed = absl::InfiniteFuture();      // For the next snapshot of this wait.
};

// Steps of small workers that one decision looks at, the soonest ones.
inline constexpr size_t kMaxEvents = 8;

// Whether rows ever wait under the policy; where they do not, nothing needs to be looked at.
bool MayWait(const BatchingPolicy& policy);

ReleaseDecision DecideRelease(const ReleaseSnapshot& snapshot, const ReleaseRule& rule);

}  // namespace tokenrouter
