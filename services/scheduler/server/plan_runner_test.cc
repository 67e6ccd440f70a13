#include "services/scheduler/server/plan_runner.h"

#include <gtest/gtest.h>

#include <thread>

namespace tokenrouter {
namespace {

// Waits for `count` plans; the time limit of the test bounds the wait.
std::vector<PlanRunner::Done> Await(PlanRunner* runner, size_t count) {
  std::vector<PlanRunner::Done> all;
  while (all.size() < count) {
    for (PlanRunner::Done& done : runner->TakeDone()) all.push_back(std::move(done));
    std::this_thread::yield();
  }
  return all;
}

PlanInputs Inputs(int pair, int32_t requests) {
  PlanInputs inputs{.pair = pair, .requests = requests};
  inputs.curves[0] = {.base_ms = 3, .row_ms = .01, .id_ms = 0};
  inputs.curves[1] = {.base_ms = 15, .row_ms = .02, .id_ms = .128};
  return inputs;
}

TEST(PlanRunnerTest, GivesBackOnePlanForEachThatWasStarted) {
  PlanRunner runner;
  runner.Start(Inputs(0, 4));
  runner.Start(Inputs(1, 8));
  const auto done = Await(&runner, 2);
  EXPECT_EQ(done[0].pair, 0);
  EXPECT_EQ(done[1].pair, 1);
  ASSERT_TRUE(done[1].plan.has_value());
  EXPECT_EQ(done[1].plan->inputs.requests, 8);
  EXPECT_GT(done[1].cost, absl::ZeroDuration());
}

TEST(PlanRunnerTest, ReportsThatAPlanCannotBeMade) {
  PlanRunner runner;
  runner.Start(Inputs(0, 0));
  EXPECT_FALSE(Await(&runner, 1)[0].plan.has_value());
}

TEST(PlanRunnerTest, CanBeDestroyedWhileAPlanIsMade) {
  PlanRunner runner;
  for (int i = 0; i < 3; ++i) runner.Start(Inputs(i, 256));
}

}  // namespace
}  // namespace tokenrouter
