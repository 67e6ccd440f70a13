// TimedEngine is a SyntheticEngine whose steps take the time of a curve: the four real binaries run
// on it at hundreds of requests on any machine, and the simulator runs on it without waiting.
// Contract, threads and errors: engine.h. A failed step takes no time.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "libs/synthetic/step_curve.h"
#include "libs/synthetic/step_pacer.h"
#include "libs/synthetic/synthetic_engine.h"

namespace tokenrouter {

class TimedEngine : public SyntheticEngine {
 public:
  // `pacer` null: nothing waits; the caller reads last_step_time(). `noise_seed` keys the noise.
  TimedEngine(const SyntheticEngineOptions& options, const StepCurve& curve,
              std::unique_ptr<StepPacer> pacer, uint64_t noise_seed = 0);

  absl::Status Step(const StepBatch& batch, StepResult* result) override;
  // The mean of the curve.
  absl::Duration Predict(int rows, int64_t new_ids) const override {
    return curve_.Mean(rows, new_ids);
  }

  // The time that the curve gave to the last step that succeeded.
  absl::Duration last_step_time() const { return last_step_time_; }

 private:
  const StepCurve curve_;
  const std::unique_ptr<StepPacer> pacer_;
  const uint64_t noise_seed_;
  int64_t steps_ = 0;
  absl::Duration last_step_time_;
};

}  // namespace tokenrouter
