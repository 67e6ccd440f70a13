#include "libs/worker/engines/engine_calibration.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>

#include "libs/batching_model/step_time_estimator.h"
#include "libs/paging/block_types.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/telemetry/log.h"
#include "libs/worker/step/batch_planner.h"

namespace tokenrouter {
namespace {

constexpr int kRepeats = 3;
// No shape repeats its steps beyond such a part of the budget: on a slow engine it is better to
// know two shapes roughly than one well.
constexpr int kLeastShapes = 4;

struct Shape {
  int32_t rows;
  int64_t new_ids;  // A multiple of rows.
};
// A few shapes separate the costs of base, rows and ids; the others refine them, the long ones
// last.
constexpr Shape kShapes[] = {{1, 1},   {1, 16}, {4, 4},  {2, 2},  {8, 8},
                             {16, 16}, {4, 40}, {1, 64}, {1, 256}};

class Calibration {
 public:
  Calibration(const CalibrationLimits& limits, const Clock& clock, Engine* engine)
      : limits_(limits), clock_(clock), engine_(engine), end_(clock.Now() + limits.budget) {}

  bool Fits(const Shape& shape) const {
    const EngineInfo& info = engine_->info();
    const int64_t per_row = shape.new_ids / shape.rows;
    return shape.rows <= limits_.max_rows && shape.new_ids <= limits_.max_step_tokens &&
           per_row <= info.context_limit &&
           shape.rows * BlocksFor(per_row, info.block_size) <= engine_->unallocated_blocks();
  }

  // No value when there is no time for it.
  absl::StatusOr<std::optional<absl::Duration>> Measure(const Shape& shape) {
    const auto expected = absl::Milliseconds(times_.Predict(shape.rows, shape.new_ids));
    if (clock_.Now() + expected > end_) return std::nullopt;
    // The engine's first step is cold, so the remaining time is used for a second one.
    const bool first = times_.observations() == 0;
    const absl::Time enough = std::min(end_, clock_.Now() + limits_.budget / kLeastShapes);
    std::vector<absl::Duration> took;
    TR_ASSIGN_OR_RETURN(const absl::Duration warm_up, Time(shape));
    for (int i = 0; i < kRepeats; ++i) {
      if (clock_.Now() >= (first && took.empty() ? end_ : enough)) break;
      TR_ASSIGN_OR_RETURN(const absl::Duration time, Time(shape));
      took.push_back(time);
    }
    if (took.empty()) took.push_back(warm_up);
    const auto middle = took.begin() + static_cast<ptrdiff_t>(took.size() / 2);
    std::nth_element(took.begin(), middle, took.end());
    times_.Observe(shape.rows, shape.new_ids, absl::ToDoubleMilliseconds(*middle));
    return *middle;
  }

 private:
  absl::StatusOr<absl::Duration> Time(const Shape& shape) {
    const auto per_row = static_cast<size_t>(shape.new_ids / shape.rows);
    std::vector<TokenId> ids(per_row);
    for (size_t i = 0; i < per_row; ++i) {
      ids[i] = static_cast<TokenId>(i % static_cast<size_t>(engine_->info().usable_ids));
    }
    StepBatch batch;
    for (int32_t row = 0; row < shape.rows; ++row) {
      batch.rows.push_back({.sequence = SequenceId{static_cast<uint64_t>(row) + 1},
                            .new_ids = ids,
                            .choices = 1,
                            .sampling = &sampling_,
                            .signals = {}});
    }
    StepResult result;
    const absl::Time start = clock_.Now();
    const absl::Status status = engine_->Step(batch, &result);
    const absl::Duration time = clock_.Now() - start;
    for (const StepRow& row : batch.rows) engine_->Release(row.sequence);
    TR_RETURN_IF_ERROR(status);
    return time;
  }

  const CalibrationLimits& limits_;
  const Clock& clock_;
  Engine* const engine_;
  const absl::Time end_;
  const SamplingContext sampling_;
  StepTimeEstimator times_;
};

wire::StepSample SampleOf(const Shape& shape, absl::Duration time) {
  wire::StepSample sample;
  sample.set_rows(shape.rows);
  sample.set_new_ids(shape.new_ids);
  sample.set_elapsed_us(absl::ToInt64Microseconds(time));
  return sample;
}

}  // namespace

std::vector<wire::StepSample> Calibrate(const CalibrationLimits& limits, const Clock& clock,
                                        Engine* engine, const CalibrationProgress& progress) {
  const int64_t free_blocks = engine->unallocated_blocks();
  Calibration calibration(limits, clock, engine);
  std::vector<wire::StepSample> samples;
  int done = 0;
  for (const Shape& shape : kShapes) {
    progress(done++, static_cast<int>(std::size(kShapes)));
    if (!calibration.Fits(shape)) continue;
    const auto time = calibration.Measure(shape);
    if (!time.ok()) {
      LogWarning("calibration_failed",
                 {{"rows", shape.rows}, {"new_ids", shape.new_ids}, {"status", time.status()}});
      break;
    }
    if (!time->has_value()) continue;
    samples.push_back(SampleOf(shape, **time));
    LogInfo("calibrated", {{"rows", shape.rows},
                           {"new_ids", shape.new_ids},
                           {"ms", absl::ToDoubleMilliseconds(**time)}});
  }
  TR_CHECK(engine->unallocated_blocks() == free_blocks)
      << engine->unallocated_blocks() << " blocks are free";
  return samples;
}

}  // namespace tokenrouter
