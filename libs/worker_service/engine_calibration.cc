#include "libs/worker_service/engine_calibration.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>

#include "libs/batching/batch_planner.h"
#include "libs/batching_model/step_time_estimator.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/telemetry/log.h"

namespace tokenrouter {
namespace {

constexpr int kRepeats = 3;

struct Shape {
  int32_t rows;
  int64_t new_ids;  // A multiple of rows.
};
// Few shapes tell base, rows and ids apart; the others refine them, the long ones last.
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
           shape.rows * BlocksOf(per_row, info.block_size) <= engine_->free_blocks();
  }

  // Nothing when there is no time for it.
  absl::StatusOr<std::optional<absl::Duration>> Measure(const Shape& shape) {
    const auto expected = absl::Milliseconds(times_.Predict(shape.rows, shape.new_ids));
    int warm_ups = 1, repeats = kRepeats;
    if (clock_.Now() + (1 + kRepeats) * expected > end_) repeats = 1;
    if (clock_.Now() + 2 * expected > end_) warm_ups = 0;
    if (clock_.Now() + expected > end_) return std::nullopt;
    std::vector<absl::Duration> took;
    for (int i = 0; i < warm_ups + repeats; ++i) {
      TR_ASSIGN_OR_RETURN(const absl::Duration time, Time(shape));
      if (i >= warm_ups) took.push_back(time);
      // The expectation was wrong: what there is has to do.
      if (clock_.Now() >= end_) {
        if (took.empty()) took.push_back(time);
        break;
      }
    }
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

v1::StepSample SampleOf(const Shape& shape, absl::Duration time) {
  v1::StepSample sample;
  sample.set_rows(shape.rows);
  sample.set_new_ids(shape.new_ids);
  sample.set_elapsed_us(absl::ToInt64Microseconds(time));
  return sample;
}

}  // namespace

std::vector<v1::StepSample> Calibrate(const CalibrationLimits& limits, const Clock& clock,
                                      Engine* engine, const CalibrationProgress& progress) {
  const int64_t free_blocks = engine->free_blocks();
  Calibration calibration(limits, clock, engine);
  std::vector<v1::StepSample> samples;
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
  TR_CHECK(engine->free_blocks() == free_blocks) << engine->free_blocks() << " blocks are free";
  return samples;
}

}  // namespace tokenrouter
