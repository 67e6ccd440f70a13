#include "libs/synthetic/timed_engine.h"

#include <utility>

#include "libs/status/status_macros.h"

namespace tokenrouter {

TimedEngine::TimedEngine(const SyntheticEngineOptions& options, const StepCurve& curve,
                         std::unique_ptr<StepPacer> pacer, uint64_t noise_seed)
    : SyntheticEngine(options), curve_(curve), pacer_(std::move(pacer)), noise_seed_(noise_seed) {}

absl::Status TimedEngine::Step(const StepBatch& batch, StepResult* result) {
  if (pacer_ != nullptr) pacer_->Start();
  TR_RETURN_IF_ERROR(SyntheticEngine::Step(batch, result));
  last_step_time_ =
      curve_.Draw(static_cast<int>(batch.rows.size()), batch.new_ids(), noise_seed_, steps_++);
  if (pacer_ != nullptr) pacer_->FinishAfter(last_step_time_);
  return absl::OkStatus();
}

}  // namespace tokenrouter
