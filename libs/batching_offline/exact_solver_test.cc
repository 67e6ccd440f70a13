#include "libs/batching_offline/exact_solver.h"

#include <string>

#include "libs/batching_model/affine_fixture.h"
#include "libs/batching_model/simulator.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

// Vectors V1..V10 of the batching model, section 8: rows per second on a 1 ms grid, what to do when
// both sides are idle by rows ready on the small side (1 small, 2 large, 3 both), and tau* of
// S(1,1) L(1,1) S(1,2) L(1,2).
struct Vector {
  const char* id;
  int requests;
  double small_base, small_row, large_base, large_row;
  double r, q;
  double greedy;
  int m_large;
  double of_static, optimum;
  const char* both_idle;
  std::vector<int> waits;
};

std::vector<Vector> Vectors() {
  return {{"V1", 2, 6, 0, 24, 0, .4, 1, 142.64, 2, 156.86, 156.86, "211", {4, 7}},
          {"V2", 3, 5, 1, 20, 2, .2, 1, 272.07, 2, 255.70, 273.95, "2331", {3, 2, 4, 5}},
          {"V3", 4, 6, 0, 25, 0, .2, 1, 353.33, 2, 351.77, 369.99, "23311", {4, 5, 5, 6}},
          {"V4", 4, 10, 1, 31, 3, .1, .5, 220.60, 2, 205.21, 222.45, "23331", {4, 3, 6, 5}},
          {"V5", 6, 7, 0, 24, 1, .3, 1, 400.09, 3, 414.02, 414.91, "2333111", {6, 4, 6, 7}},
          {"V6", 8, 5, 1, 17, 1, .4, 1, 521.35, 4, 496.41, 539.88, "233333311", {2, 5, 5, 6}},
          {"V7", 8, 25, 4, 80, 12, .2, 1, 120.47, 4, 108.81, 123.27, "233333331", {7, 17, 21, 24}},
          {"V8", 8, 6, 0, 25, 0, .1, 1, 890.13, 4, 811.94, 915.04, "233333311", {5, 1, 5, 5}},
          {"V9", 12, 7, 1, 30, 2, .25, 1, 527.38, 6, 486.61, 540.74, "2333333333331", {5, 8, 6, 9}},
          {"V10",
           16,
           11,
           0,
           40,
           1,
           .1,
           .8,
           931.27,
           8,
           818.34,
           960.18,
           "23333333333333111",
           {1, 8, 2, 8}}};
}

class ExactSolverTest : public ::testing::TestWithParam<Vector> {
 protected:
  ExactSolverTest()
      : small_(AffineStepTimes(v_.small_base, v_.small_row, v_.requests)),
        large_(AffineStepTimes(v_.large_base, v_.large_row, v_.requests)) {}

  absl::StatusOr<ExactSolution> Solve(std::optional<ExactProblem::Thresholds> fixed = {}) const {
    return SolveTwoDevices({.small = small_,
                            .large = large_,
                            .requests = v_.requests,
                            .r = v_.r,
                            .q = v_.q,
                            .fixed = fixed});
  }

  const Vector& v_ = GetParam();
  const std::vector<double> small_, large_;
};

TEST_P(ExactSolverTest, ReproducesTheOptimumAndItsDecisions) {
  TR_ASSERT_OK_AND_ASSIGN(const ExactSolution solution, Solve());
  EXPECT_NEAR(solution.rows_per_s / v_.optimum, 1, 1e-4);
  std::string both_idle;
  for (const BothIdle action : solution.both_idle) both_idle += '0' + static_cast<int>(action);
  EXPECT_EQ(both_idle, v_.both_idle);
  std::vector<int> waits = {solution.wait_below[0][1][1], solution.wait_below[1][1][1]};
  if (v_.waits.size() == 4) {
    waits.push_back(solution.wait_below[0][1][2]);
    waits.push_back(solution.wait_below[1][1][2]);
  }
  EXPECT_EQ(waits, v_.waits);
}

TEST_P(ExactSolverTest, ReproducesGreedyAndStaticThresholds) {
  TR_ASSERT_OK_AND_ASSIGN(const ExactSolution greedy, Solve({{1, 1}}));
  EXPECT_NEAR(greedy.rows_per_s / v_.greedy, 1, 1e-3);
  TR_ASSERT_OK_AND_ASSIGN(const ExactSolution fixed, Solve({{1, v_.m_large}}));
  EXPECT_NEAR(fixed.rows_per_s / v_.of_static, 1, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Vectors, ExactSolverTest, ::testing::ValuesIn(Vectors()),
                         [](const auto& info) { return std::string(info.param.id); });

TEST(ExactSolverLimitsTest, EqualStepTimesSettleThoughTheChainIsPeriodic) {
  const std::vector<double> times = AffineStepTimes(20, .1, 8);
  TR_ASSERT_OK_AND_ASSIGN(
      const ExactSolution optimum,
      SolveTwoDevices({.small = times, .large = times, .requests = 8, .r = .4}));
  TR_ASSERT_OK_AND_ASSIGN(
      const ExactSolution greedy,
      SolveTwoDevices({.small = times, .large = times, .requests = 8, .r = .4, .fixed = {{1, 1}}}));
  EXPECT_NEAR(optimum.rows_per_s / greedy.rows_per_s, 1.03, 0.005);
}

TEST(ExactSolverLimitsTest, RefusesWhatIsTooLarge) {
  const std::vector<double> times = AffineStepTimes(20, .1, 64);
  EXPECT_THAT(SolveTwoDevices({.small = times, .large = times, .requests = 64}),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("1 to 24")));
  EXPECT_THAT(
      SolveTwoDevices({.small = times, .large = times, .requests = 4, .grid_ms = 0.001}),
      StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("grid_ms is 0.001")));
}

}  // namespace
}  // namespace tokenrouter
