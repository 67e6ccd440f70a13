#include "libs/worker/engines/engine_calibration.h"

#include <utility>

#include "libs/status/status_matchers.h"
#include "libs/synthetic/timed_engine.h"
#include "libs/timing/simulated_clock.h"

namespace tokenrouter {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Steps move the clock by what the curve gives.
class ClockPacer : public StepPacer {
 public:
  explicit ClockPacer(SimulatedClock* clock) : clock_(clock) {}
  void Start() override {}
  void FinishAfter(absl::Duration time) override { clock_->Advance(time); }

 private:
  SimulatedClock* const clock_;
};

class EngineCalibrationTest : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> Make(const StepCurve& curve, const SyntheticEngineOptions& options = {}) {
    return std::make_unique<TimedEngine>(options, curve, std::make_unique<ClockPacer>(&clock_));
  }
  std::vector<wire::StepSample> Run(const CalibrationLimits& limits, Engine* engine) {
    const absl::Time start = clock_.Now();
    auto samples = Calibrate(limits, clock_, engine,
                             [this](int done, int total) { EXPECT_EQ(done, progress_++ % total); });
    took_ = clock_.Now() - start;
    EXPECT_EQ(engine->unallocated_blocks(), engine->info().total_blocks);
    for (uint64_t id = 1; id <= 16; ++id) EXPECT_EQ(engine->Length(SequenceId{id}), 0);
    return samples;
  }

  SimulatedClock clock_;
  absl::Duration took_;
  int progress_ = 0;
};

TEST_F(EngineCalibrationTest, MeasuresEveryShapeWithinTheBudget) {
  const StepCurve curve = {.base_ms = 3, .row_ms = 0.5, .id_ms = 0.1};
  const auto engine = Make(curve);
  const auto samples = Run({.max_rows = 64, .max_step_tokens = 512}, engine.get());
  EXPECT_THAT(samples, SizeIs(9));
  EXPECT_EQ(progress_, 9);
  for (const wire::StepSample& sample : samples) {
    EXPECT_EQ(absl::Microseconds(sample.elapsed_us()), curve.Mean(sample.rows(), sample.new_ids()));
  }
  EXPECT_LT(took_, kCalibrationBudget);
}

TEST_F(EngineCalibrationTest, KeepsToTheBudgetWithASlowEngine) {
  // The default large model on a small machine, and one that is far too slow for any of this.
  for (const double factor : {1.0, 60.0}) {
    const auto engine = Make({.base_ms = 45 * factor, .row_ms = 1 * factor, .id_ms = 19 * factor});
    const auto samples = Run({.max_rows = 64, .max_step_tokens = 512}, engine.get());
    EXPECT_LT(took_, kCalibrationBudget + factor * absl::Milliseconds(45 + 19 * 16 + 1));
    EXPECT_EQ(samples[0].elapsed_us(), static_cast<int64_t>(65'000 * factor));
    EXPECT_GE(samples.size(), factor == 1.0 ? 3u : 1u);
  }
}

TEST_F(EngineCalibrationTest, LeavesOutWhatTheLimitsOfTheWorkerForbid) {
  const auto engine = Make({.base_ms = 1});
  for (const auto& sample : Run({.max_rows = 3, .max_step_tokens = 60}, engine.get())) {
    EXPECT_LE(sample.rows(), 3);
    EXPECT_LE(sample.new_ids(), 60);
  }
  const auto tiny =
      Make({.base_ms = 1}, {.context_limit = 32, .block_size = 16, .total_blocks = 4});
  for (const auto& sample : Run({.max_rows = 64, .max_step_tokens = 512}, tiny.get())) {
    EXPECT_LE(sample.rows(), 4);
    EXPECT_LE(sample.new_ids(), 40);
  }
  const auto none = Make({.base_ms = 1}, {.total_blocks = 0});
  EXPECT_THAT(Run({.max_rows = 64, .max_step_tokens = 512}, none.get()), IsEmpty());
}

TEST_F(EngineCalibrationTest, TellsIdsFromTheBaseOnABusyMachineToo) {
  const auto engine = Make({.base_ms = 420, .row_ms = 2, .id_ms = 18});
  const auto samples = Run({.max_rows = 64, .max_step_tokens = 512}, engine.get());
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(samples[0].elapsed_us(), 440'000);
  EXPECT_EQ(samples[1].new_ids(), 16);
  EXPECT_EQ(samples[1].elapsed_us(), 710'000);
}

// The first step of the engine takes long.
class ColdPacer : public ClockPacer {
 public:
  using ClockPacer::ClockPacer;
  void FinishAfter(absl::Duration time) override {
    ClockPacer::FinishAfter(std::exchange(cold_, false) ? absl::Seconds(1) : time);
  }

 private:
  bool cold_ = true;
};

TEST_F(EngineCalibrationTest, AColdFirstStepDoesNotCount) {
  TimedEngine engine({}, {.base_ms = 200, .id_ms = 5}, std::make_unique<ColdPacer>(&clock_));
  const auto samples = Run({.max_rows = 64, .max_step_tokens = 512}, &engine);
  EXPECT_GE(samples.size(), 2u);
  EXPECT_EQ(samples[0].elapsed_us(), 205'000);
}

// One step in four takes long.
class StallingPacer : public ClockPacer {
 public:
  using ClockPacer::ClockPacer;
  void FinishAfter(absl::Duration time) override {
    const bool stalls = ++steps_ % 4 == 3;
    ClockPacer::FinishAfter(time + absl::Milliseconds(stalls ? 100 : 0));
  }

 private:
  int steps_ = 0;
};

TEST_F(EngineCalibrationTest, AStalledStepDoesNotCount) {
  TimedEngine engine({}, {.base_ms = 10}, std::make_unique<StallingPacer>(&clock_));
  for (const auto& sample : Run({.max_rows = 64, .max_step_tokens = 512}, &engine)) {
    EXPECT_EQ(sample.elapsed_us(), 10'000);
  }
}

class FailingEngine : public TimedEngine {
 public:
  using TimedEngine::TimedEngine;
  absl::Status Step(const StepBatch& batch, StepResult* result) override {
    if (batch.rows.size() > 2) return absl::InternalError("no");
    return TimedEngine::Step(batch, result);
  }
};

TEST_F(EngineCalibrationTest, AFailingStepEndsItWithWhatIsKnown) {
  FailingEngine engine({}, {.base_ms = 1}, std::make_unique<ClockPacer>(&clock_));
  EXPECT_THAT(Run({.max_rows = 64, .max_step_tokens = 512}, &engine), SizeIs(2));
}

}  // namespace
}  // namespace tokenrouter
