#include "services/scheduler/pair_model/pair_observations.h"

#include <algorithm>

namespace tokenrouter {
namespace {

// The weight of a new observation in the handoff latency and the mean lengths: about the last
// fifty.
constexpr double kFollow = 0.02;

void Follow(double value, int64_t seen, double* mean) {
  *mean += (value - *mean) * std::max(kFollow, 1.0 / static_cast<double>(seen));
}

}  // namespace

void PairObservations::ObserveStep(Role role, int32_t rows, int64_t new_ids,
                                   absl::Duration elapsed) {
  if (rows <= 0 || new_ids <= 0) return;
  curves_[static_cast<int>(role)].Observe(rows, new_ids, absl::ToDoubleMilliseconds(elapsed));
}

void PairObservations::ObserveRows(Role role, int64_t steps, int64_t handoffs) {
  (role == Role::kSmall ? routed_ : returned_).Observe(std::max(steps, handoffs), handoffs);
}

void PairObservations::ObserveHandoff(absl::Duration latency) {
  Follow(std::max(0.0, absl::ToDoubleMilliseconds(latency)), ++handoffs_seen_,
         &handoff_latency_ms_);
}

void PairObservations::ObserveBegun(int32_t uncomputed_ids, int32_t most_tokens) {
  Follow(uncomputed_ids, ++begun_, &lengths_.uncomputed);
  Follow(most_tokens, begun_, &lengths_.limit);
}

void PairObservations::ObserveFinished(int32_t generated) {
  if (lengths_.generated == 0) lengths_.generated = generated;
  Follow(generated, 1 / kFollow, &lengths_.generated);
}

void PairObservations::SetTopology(bool shared_device, absl::Duration max_step) {
  const bool limited = max_step < absl::InfiniteDuration();
  topology_ = {.shared_device = shared_device,
               .max_step_ms = limited ? absl::ToDoubleMilliseconds(max_step) : 0};
}

}  // namespace tokenrouter
