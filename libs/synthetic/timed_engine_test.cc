#include "libs/synthetic/timed_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

// Records the requested times and never waits.
class RecordingPacer : public StepPacer {
 public:
  explicit RecordingPacer(std::vector<absl::Duration>* times) : times_(times) {}
  void Start() override { ++starts_; }
  void FinishAfter(absl::Duration time) override {
    EXPECT_GT(starts_, static_cast<int>(times_->size()));
    times_->push_back(time);
  }

 private:
  std::vector<absl::Duration>* times_;
  int starts_ = 0;
};

absl::Status Extend(TimedEngine* engine, SequenceId sequence, const std::vector<TokenId>& ids) {
  StepResult result;
  return engine->Step({{{.sequence = sequence, .first = engine->Length(sequence), .new_ids = ids}}},
                      &result);
}

TEST(TimedEngineTest, StepsTakeTheTimeOfTheCurve) {
  std::vector<absl::Duration> times;
  TimedEngine engine({}, {.base_ms = 3, .row_ms = 1, .id_ms = 0.5},
                     std::make_unique<RecordingPacer>(&times));
  ASSERT_THAT(Extend(&engine, {1}, {1, 2}), IsOk());
  EXPECT_THAT(times, testing::ElementsAre(absl::Milliseconds(5)));
  EXPECT_EQ(engine.last_step_time(), absl::Milliseconds(5));
  EXPECT_EQ(engine.Predict(2, 4), absl::Milliseconds(7));
}

TEST(TimedEngineTest, FailedStepsTakeNoTime) {
  std::vector<absl::Duration> times;
  TimedEngine engine({}, {.base_ms = 3}, std::make_unique<RecordingPacer>(&times));
  EXPECT_THAT(Extend(&engine, {1}, {-1}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(times.empty());
}

TEST(TimedEngineTest, NoiseRepeatsWithItsSeed) {
  const StepCurve curve{.base_ms = 3, .noise = 0.1};
  std::vector<absl::Duration> a, b, c;
  for (const auto& [times, seed] : {std::pair{&a, 1}, std::pair{&b, 1}, std::pair{&c, 2}}) {
    TimedEngine engine({}, curve, std::make_unique<RecordingPacer>(times), seed);
    for (int i = 0; i < 5; ++i) ASSERT_THAT(Extend(&engine, {1}, {1}), IsOk());
  }
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

TEST(SleepingPacerTest, IsNeverEarlyBeyondWhatItOverslept) {
  SleepingPacer pacer;
  timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  constexpr int kSteps = 20;
  for (int i = 0; i < kSteps; ++i) {
    pacer.Start();
    pacer.FinishAfter(absl::Milliseconds(1));
  }
  clock_gettime(CLOCK_MONOTONIC, &after);
  const absl::Duration total =
      absl::DurationFromTimespec(after) - absl::DurationFromTimespec(before);
  EXPECT_GE(total, absl::Milliseconds(kSteps - 1));
}

}  // namespace
}  // namespace tokenrouter
