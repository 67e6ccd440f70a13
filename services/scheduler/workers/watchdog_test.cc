#include "services/scheduler/workers/watchdog.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

const CoreOptions kOptions;

WorkerHealth After(absl::Duration silent, absl::Duration elapsed, absl::Duration predicted) {
  const absl::Time start = absl::UnixEpoch();
  return JudgeWorker({start, elapsed, predicted}, kOptions, start + silent);
}

TEST(Watchdog, CallsAWorkerSilentAfterThreeHeartbeats) {
  EXPECT_EQ(After(absl::Seconds(3), {}, {}), WorkerHealth::kAlive);
  EXPECT_EQ(After(absl::Milliseconds(3001), {}, {}), WorkerHealth::kSilent);
}

TEST(Watchdog, MeasuresAStepByItsPrediction) {
  constexpr absl::Duration kShort = absl::Milliseconds(1);
  EXPECT_EQ(After({}, absl::Seconds(5), kShort), WorkerHealth::kAlive);
  EXPECT_EQ(After({}, absl::Seconds(6), kShort), WorkerHealth::kWedged);
  // A prefill that is predicted to take one second may take twenty.
  EXPECT_EQ(After({}, absl::Seconds(19), absl::Seconds(1)), WorkerHealth::kAlive);
  EXPECT_EQ(After({}, absl::Seconds(21), absl::Seconds(1)), WorkerHealth::kWedged);
}

TEST(Watchdog, IsPatientWithAWorkerThatCannotPredictYet) {
  EXPECT_EQ(After({}, absl::Seconds(60), {}), WorkerHealth::kAlive);
  EXPECT_EQ(After({}, absl::Seconds(61), {}), WorkerHealth::kWedged);
}

TEST(Watchdog, NoticesALoopThatHasStoppedBetweenSteps) {
  const absl::Time now = absl::UnixEpoch();
  WorkerPulse pulse = {.heard_at = now, .loop_elapsed = kOptions.loop_stall};
  EXPECT_EQ(JudgeWorker(pulse, kOptions, now), WorkerHealth::kAlive);
  pulse.loop_elapsed += absl::Milliseconds(1);
  EXPECT_EQ(JudgeWorker(pulse, kOptions, now), WorkerHealth::kLoopStuck);
  // While a step runs the loop stands, and the step is judged.
  pulse.step_elapsed = pulse.loop_elapsed;
  EXPECT_EQ(JudgeWorker(pulse, kOptions, now), WorkerHealth::kAlive);
}

}  // namespace
}  // namespace tokenrouter
