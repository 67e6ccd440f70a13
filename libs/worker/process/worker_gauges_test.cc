#include "libs/worker/process/worker_gauges.h"

#include <gtest/gtest.h>

#include <thread>

namespace tokenrouter {
namespace {

TEST(WorkerGaugesTest, AHeartbeatTellsTheAgeOfTheRunningStep) {
  WorkerGauges gauges;
  const absl::Time start = absl::UnixEpoch();
  gauges.SetLoad(3, 10, 2);
  EXPECT_EQ(gauges.Heartbeat(start).step_elapsed_us(), 0);
  gauges.StepStarts(start, absl::Milliseconds(7));
  EXPECT_EQ(gauges.Heartbeat(start).step_elapsed_us(), 1) << "0 would mean that none runs";
  const wire::Heartbeat heartbeat = gauges.Heartbeat(start + absl::Milliseconds(40));
  EXPECT_EQ(heartbeat.step_elapsed_us(), 40000);
  EXPECT_EQ(heartbeat.step_predicted_us(), 7000);
  EXPECT_EQ(heartbeat.steps(), 3u);
  EXPECT_EQ(heartbeat.free_blocks(), 10);
  EXPECT_EQ(heartbeat.sequences(), 2);
  gauges.StepEnded();
  EXPECT_EQ(gauges.Heartbeat(start).step_elapsed_us(), 0);
}

TEST(WorkerGaugesTest, AHeartbeatTellsSinceWhenTheLoopHasNotGoneRound) {
  WorkerGauges gauges;
  const absl::Time start = absl::UnixEpoch();
  EXPECT_EQ(gauges.Heartbeat(start + absl::Hours(1)).loop_elapsed_us(), 0) << "it has not begun";
  gauges.LoopRuns(start);
  EXPECT_EQ(gauges.Heartbeat(start + absl::Seconds(2)).loop_elapsed_us(), 2'000'000);
  gauges.LoopSleeps();
  EXPECT_EQ(gauges.Heartbeat(start + absl::Hours(1)).loop_elapsed_us(), 0);
}

TEST(WorkerGaugesTest, IsAliveWhileTheLoopGoesRoundOrSleepsOrRunsAStepInTime) {
  WorkerGauges gauges;
  const absl::Time start = absl::UnixEpoch();
  EXPECT_TRUE(gauges.Alive(start + absl::Hours(1)).ok()) << "a model may load for long";
  gauges.LoopRuns(start);
  EXPECT_TRUE(gauges.Alive(start + kStepLoopWedged).ok());
  EXPECT_FALSE(gauges.Alive(start + kStepLoopWedged + absl::Seconds(1)).ok());
  gauges.StepStarts(start, absl::Seconds(1));
  EXPECT_TRUE(gauges.Alive(start + kStepWedged).ok());
  EXPECT_FALSE(gauges.Alive(start + kStepWedged + absl::Seconds(1)).ok());
  gauges.StepStarts(start, absl::Seconds(10));
  EXPECT_TRUE(gauges.Alive(start + kStepWedged + absl::Seconds(1)).ok()) << "as was predicted";
  gauges.StepEnded();
  gauges.LoopSleeps();
  EXPECT_TRUE(gauges.Alive(start + absl::Hours(1)).ok());
}

TEST(WorkerGaugesTest, HeartbeatsComeFromAnotherThread) {
  WorkerGauges gauges;
  std::thread heart([&gauges] {
    for (int i = 0; i < 2000; ++i) {
      const wire::Heartbeat heartbeat = gauges.Heartbeat(absl::UnixEpoch() + absl::Seconds(1));
      EXPECT_EQ(heartbeat.step_elapsed_us() == 0, heartbeat.step_predicted_us() == 0);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    gauges.StepStarts(absl::UnixEpoch(), absl::Milliseconds(1));
    gauges.SetLoad(i, 1, 1);
    gauges.StepEnded();
  }
  heart.join();
}

}  // namespace
}  // namespace tokenrouter
