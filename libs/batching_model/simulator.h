// A token-accurate simulation of routed decoding: `requests` in a closed loop, one small and one
// large model, on two devices or alternating on one. The large model computes every committed token
// exactly once, so a large step is costed by (rows, new ids); a routed small row emits nothing.
// Pure: the result depends on the setup and the seed alone. Threads: independent simulations may
// run at once. Units: milliseconds in; per second out. Cost: O(rows simulated).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

// Predicted milliseconds of a step of a given number of rows and new ids. Must be positive and must
// not decrease with either.
using StepCost = std::function<double(int rows, int64_t new_ids)>;

struct BatchingPolicy {
  enum class Kind {
    kGreedy,        // Run all ready rows at once; on a shared device the large side first.
    kStatic,        // Wait for m_small, m_large rows.
    kFixedWait,     // Wait until the oldest ready row has waited for a fixed time.
    kLongestQueue,  // Shared device: serve the longer queue. Two devices: greedy.
    kModel,         // Two devices: delay balance. Shared device: threshold m_large.
  };
  Kind kind = Kind::kGreedy;
  int m_small = 1;
  int m_large = 1;
  double wait_small_ms = 0;
  double wait_large_ms = 0;
  // kModel on two devices: the mean step of either side, which a row saves that joins a step
  // (delay_balance.h). 0: unknown.
  double step_small_ms = 0;
  double step_large_ms = 0;
};

struct SimulationSetup {
  StepCost small;
  StepCost large;
  bool shared_device = false;
  // Workers of each pool, each on a dedicated device; a shared device has one of each. A request
  // stays with its small and its large worker, as KV affinity requires.
  int small_workers = 1;
  int large_workers = 1;
  // How decisions are made on two devices. false: one decision that knows both sides. true: as in
  // the real system, where the scheduler decides for the large side, and a small worker decides
  // alone and knows only which step of the other side has rows of it.
  bool distributed = false;
  int requests = 1;
  double r = 0.1;  // P(a small row is routed), in (0, 1).
  double q = 1.0;  // P(the large side hands back after a step), in (0, 1].
  // P(a large row commits 1, 2, ... tokens in a step): the kept drafts of its window and the large
  // model's own token. Empty: one each.
  std::vector<double> committed = {};
  double noise_cv = 0;  // Relative spread of step times (log-normal, mean kept).
  // The handoff latency: from the end of a step on one side until the row is ready on the other,
  // and until the other side knows of a step. On a shared device: how long a change of the lease
  // takes.
  double hop_ms = 0;
  // A step takes rows only while it is predicted to last no longer; at least one. The others wait
  // for the next step. On a shared device that is the length of a lease, and after a large step
  // that left rows behind the small side holds the device until a row of it leaves. 0: no limit.
  double max_step_ms = 0;
  double duration_ms = 100000;
  int64_t max_steps = 0;  // The run also ends after this many steps of both sides; 0: never.
  int64_t max_rows = 0;   // Likewise in rows of steps.
  // Start with half of the requests inside a large step at a random phase instead of everything
  // ready on the small side: a deterministic run can otherwise stay locked in its starting phase.
  bool desynchronised = false;
  uint64_t seed = 1;
};

struct SimulationResult {
  double committed_per_s = 0;
  double rows_per_s = 0;
  double mean_batch_small = 0;
  double mean_batch_large = 0;
  double ids_per_large_row = 0;
  double step_small_ms = 0;  // Mean duration.
  double step_large_ms = 0;
  double busy_small = 0;  // Share of time, mean of the workers.
  double busy_large = 0;
  double gap_p50_ms = 0;  // Between committed tokens of one request.
  double gap_p99_ms = 0;
};

// INVALID_ARGUMENT naming the field that is out of range; Simulate checks the same.
absl::Status CheckSetup(const SimulationSetup& setup);

absl::StatusOr<SimulationResult> Simulate(const SimulationSetup& setup,
                                          const BatchingPolicy& policy);

// Committed tokens per second of one model alone, decoding all requests in one batch.
double AloneRate(const StepCost& cost, int requests);

}  // namespace tokenrouter
