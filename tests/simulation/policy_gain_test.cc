// What the model policy gains over greedy on two devices, on the real cores in simulated time:
// waits that look right one decision at a time can still cost whole steps.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "libs/status/status_matchers.h"
#include "tests/simulation/closed_loop.h"

namespace tokenrouter::simulation {
namespace {

using Kind = BatchingPolicy::Kind;

struct Cell {
  std::string set;
  int requests;
  double r;
  bool prompts;       // Prompts as people write them; otherwise hardly any.
  double least_gain;  // The rate of kModel over that of kGreedy.
};

double RateOf(const Cell& cell, Kind kind) {
  ClosedLoopOptions options;
  options.set = cell.set;
  options.requests = cell.requests;
  options.r = cell.r;
  options.core.batching.kind = kind;
  options.SetPrompts(cell.prompts ? kPromptsOfPeople : kHardlyAnyPrompts);
  const absl::StatusOr<ClosedLoopResult> result = RunClosedLoop(options);
  EXPECT_THAT(result, IsOk());
  return result.ok() ? result->committed_per_s : 0;
}

class PolicyGain : public ::testing::TestWithParam<Cell> {};

TEST_P(PolicyGain, WaitingGainsAndNeverCostsMuch) {
  const double gain = RateOf(GetParam(), Kind::kModel) / RateOf(GetParam(), Kind::kGreedy);
  EXPECT_GE(gain, GetParam().least_gain);
}

INSTANTIATE_TEST_SUITE_P(
    Loads, PolicyGain,
    ::testing::Values(
        // Ids cost much: a large row that is held until a step's predicted end, when that comes too
        // late, waits for the whole next step.
        Cell{"h200", 16, .1, false, .99}, Cell{"h200", 16, .1, true, .98},
        // The small step that a large step's rows start is worth waiting for.
        Cell{"h200", 16, .4, false, 1.02}, Cell{"roofline", 16, .4, false, 1.05},
        // Background prefill of histories while rows are deferred.
        Cell{"roofline", 16, .1, false, 1.03}, Cell{"roofline", 16, .1, true, .98},
        // Short steps, many rows routed.
        Cell{"8b", 4, .4, false, 1.04}, Cell{"8b", 16, .4, false, 1.07},
        Cell{"8b", 16, .4, true, 1.03}, Cell{"8b", 64, .1, true, .98}),
    [](const auto& info) {
      return absl::StrCat(info.param.set, "_", info.param.requests, "_", 10 * info.param.r,
                          info.param.prompts ? "_prompts" : "");
    });

}  // namespace
}  // namespace tokenrouter::simulation
