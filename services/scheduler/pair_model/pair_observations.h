// PairObservations is what the scheduler has seen of one pair while serving it: how long steps
// take, how often requests change sides, what an algorithm's tentative tokens are worth, and how
// long prompts and answers are. It decides nothing (pair_model.h does). Threads: lives on the
// scheduler's loop. Cost: O(1) per call. Units: milliseconds.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "libs/batching_model/rate_estimator.h"
#include "libs/batching_model/step_time_estimator.h"
#include "libs/tokens/token_types.h"
#include "services/scheduler/pair_model/request_lengths.h"

namespace tokenrouter {

// Where a pair's workers run.
struct PairTopology {
  bool shared_device = false;
  double max_step_ms = 0;  // The longest step that the workers allow; 0: no limit.
};

class PairObservations {
 public:
  void ObserveStep(Role role, int32_t rows, int64_t new_ids, absl::Duration elapsed);
  // Steps of single rows after which the algorithm could have handed off, and how often it did.
  void ObserveRows(Role role, int64_t steps, int64_t handoffs);
  void ObserveVerified(int64_t tokens, int64_t kept) { acceptance_rate_.Observe(tokens, kept); }
  void ObserveHandoff(absl::Duration latency);
  // A request wrote its first token: the uncached ids of its prompt, and the tokens that it may
  // write.
  void ObserveBegun(int32_t uncomputed_ids, int32_t most_tokens);
  void ObserveFinished(int32_t generated);
  void SetTopology(bool shared_device, absl::Duration max_step);

  const StepTimeEstimator& curve(Role role) const { return curves_[static_cast<int>(role)]; }
  double PredictMs(Role role, int32_t rows, int64_t new_ids) const {
    return curve(role).Predict(rows, new_ids);
  }
  const RateEstimator& routed() const { return routed_; }      // r
  const RateEstimator& returned() const { return returned_; }  // q
  const RateEstimator& acceptance_rate() const { return acceptance_rate_; }
  absl::Duration handoff_latency() const { return absl::Milliseconds(handoff_latency_ms_); }
  const RequestLengths& lengths() const { return lengths_; }
  const PairTopology& topology() const { return topology_; }

 private:
  StepTimeEstimator curves_[kRoles];
  RateEstimator routed_{0.1};
  RateEstimator returned_{1.0};
  RateEstimator acceptance_rate_{0.5};
  double handoff_latency_ms_ = 0;
  int64_t handoffs_seen_ = 0;
  int64_t begun_ = 0;
  RequestLengths lengths_;
  PairTopology topology_;
};

}  // namespace tokenrouter
