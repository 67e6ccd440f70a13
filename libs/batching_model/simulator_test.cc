#include "libs/batching_model/simulator.h"

#include <string>
#include <vector>

#include "libs/batching_model/affine_fixture.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

// Vectors V1..V10 of the batching model, section 8: rows per second, deterministic steps on a 1 ms
// grid.
struct Vector {
  const char* id;
  int requests;
  StepCost small, large;
  double r, q;
  double greedy;
  int m_large;
  double of_static, delay_balance;
};

std::vector<Vector> Vectors() {
  return {{"V1", 2, Affine(6, 0), Affine(24, 0), .4, 1, 142.64, 2, 156.86, 156.83},
          {"V2", 3, Affine(5, 1), Affine(20, 2), .2, 1, 272.07, 2, 255.70, 272.70},
          {"V3", 4, Affine(6, 0), Affine(25, 0), .2, 1, 353.33, 2, 351.77, 369.99},
          {"V4", 4, Affine(10, 1), Affine(31, 3), .1, .5, 220.60, 2, 205.21, 221.92},
          {"V5", 6, Affine(7, 0), Affine(24, 1), .3, 1, 400.09, 3, 414.02, 414.89},
          {"V6", 8, Affine(5, 1), Affine(17, 1), .4, 1, 521.35, 4, 496.41, 535.86},
          {"V7", 8, Affine(25, 4), Affine(80, 12), .2, 1, 120.47, 4, 108.81, 122.86},
          {"V8", 8, Affine(6, 0), Affine(25, 0), .1, 1, 890.13, 4, 811.94, 915.05},
          {"V9", 12, Affine(7, 1), Affine(30, 2), .25, 1, 527.38, 6, 486.61, 538.94},
          {"V10", 16, Affine(11, 0), Affine(40, 1), .1, .8, 931.27, 8, 818.34, 956.42}};
}

double Rows(const Vector& v, BatchingPolicy policy) {
  SimulationSetup setup{
      .small = v.small, .large = v.large, .requests = v.requests, .r = v.r, .q = v.q};
  setup.duration_ms = 2e6;
  const auto result = Simulate(setup, policy);
  EXPECT_THAT(result, IsOk());
  return result.ok() ? result->rows_per_s : 0;
}

TEST(SimulatorTest, ReproducesGreedyStaticAndDelayBalanceVectors) {
  for (const Vector& v : Vectors()) {
    SCOPED_TRACE(v.id);
    EXPECT_NEAR(Rows(v, {}) / v.greedy, 1, 0.004);
    EXPECT_NEAR(Rows(v, {.kind = Kind::kStatic, .m_small = 1, .m_large = v.m_large}) / v.of_static,
                1, 0.004);
    EXPECT_NEAR(Rows(v, {.kind = Kind::kModel}) / v.delay_balance, 1, 0.01);
  }
}

// The table "what routing is worth" of the batching model: multiples of large-only service at 3 %
// noise.
TEST(SimulatorTest, ReproducesWhatRoutingIsWorth) {
  const StepCost small = Affine(3, .01), large = Affine(15, .02, .128);
  const struct {
    int requests;
    double two_devices, large_first, best_threshold;
    int m;
  } rows[] = {{1, 3.25, 3.25, 3.25, 1},
              {4, 2.82, 1.77, 2.30, 3},
              {16, 2.61, .99, 1.95, 10},
              {64, 2.09, .91, 1.55, 32}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.requests);
    SimulationSetup setup{
        .small = small, .large = large, .requests = row.requests, .r = .1, .noise_cv = .03};
    setup.duration_ms = 1e6;
    const double alone = AloneRate(large, row.requests);
    const auto worth = [&](bool shared, BatchingPolicy policy) {
      setup.shared_device = shared;
      return Simulate(setup, policy)->committed_per_s / alone;
    };
    EXPECT_NEAR(worth(false, {}) / row.two_devices, 1, 0.03);
    EXPECT_NEAR(worth(true, {}) / row.large_first, 1, 0.03);
    EXPECT_NEAR(worth(true, {.kind = Kind::kModel, .m_large = row.m}) / row.best_threshold, 1,
                0.03);
  }
}

TEST(SimulatorTest, ReadsEveryCommittedTokenOnceOnTheLargeSide) {
  SimulationSetup setup{
      .small = Affine(3, .01), .large = Affine(15, .02, .128), .requests = 8, .r = .2};
  const auto result = Simulate(setup, {});
  ASSERT_THAT(result, IsOk());
  EXPECT_NEAR(result->ids_per_large_row, 1 / .2, 0.2);
}

// The same steps and rows, but each visit of the large side commits .2 x 1 + .3 x 2 + .5 x 3 = 2.3
// tokens instead of one; per routed token there are four of the small model.
TEST(SimulatorTest, AVisitOfTheLargeSideCommitsADistributionOfTokens) {
  SimulationSetup setup{.small = Affine(3, 0), .large = Affine(15, 0), .requests = 4, .r = .2};
  setup.duration_ms = 1e6;
  TR_ASSERT_OK_AND_ASSIGN(const SimulationResult one, Simulate(setup, {}));
  setup.committed = {.2, .3, .5};
  TR_ASSERT_OK_AND_ASSIGN(const SimulationResult drafts, Simulate(setup, {}));
  EXPECT_NEAR(drafts.rows_per_s / one.rows_per_s, 1, .01);
  EXPECT_NEAR(drafts.committed_per_s / one.committed_per_s, (4 + 2.3) / (4 + 1), .01);
  setup.committed = {.5, .4};
  EXPECT_THAT(Simulate(setup, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            ::testing::HasSubstr("sum of committed is 0.9")));
}

TEST(SimulatorTest, HandoffLatencyCostsThroughputAndTheSameSeedRepeats) {
  SimulationSetup setup{
      .small = Affine(3, .01), .large = Affine(15, .02, .128), .requests = 4, .r = .1};
  const double without = Simulate(setup, {})->committed_per_s;
  EXPECT_EQ(Simulate(setup, {})->committed_per_s, without);
  setup.hop_ms = 1;
  EXPECT_LT(Simulate(setup, {})->committed_per_s, without);
}

SimulationSetup Gpu(int requests, double r) {
  return {.small = Affine(6, .02),
          .large = Affine(24, .1),
          .requests = requests,
          .r = r,
          .duration_ms = 3e5,
          .desynchronised = true};
}

TEST(SimulatorTest, AnotherSmallWorkerDoublesWhatTheSmallSideBounds) {
  SimulationSetup setup{.small = Affine(22, 7.2), .large = Affine(10, 0), .requests = 64, .r = .02};
  setup.duration_ms = 1e6;
  const double one = Simulate(setup, {})->committed_per_s;
  setup.small_workers = 2;
  EXPECT_NEAR(Simulate(setup, {})->committed_per_s / one, 1.8, 0.2);
}

TEST(SimulatorTest, EveryPolicyKeepsAllWorkersOfManyGoing) {
  for (const bool distributed : {false, true}) {
    for (const double hop : {0.0, 0.5}) {
      for (const BatchingPolicy& policy : std::vector<BatchingPolicy>{
               {},
               {.kind = Kind::kStatic, .m_small = 2, .m_large = 5},
               {.kind = Kind::kFixedWait, .wait_small_ms = 2, .wait_large_ms = 12},
               {.kind = Kind::kModel}}) {
        SCOPED_TRACE(::testing::Message()
                     << distributed << " " << hop << " " << static_cast<int>(policy.kind));
        SimulationSetup setup = Gpu(30, .2);
        const double one_pair = Simulate(setup, {})->committed_per_s;
        setup.small_workers = 3;
        setup.large_workers = 2;
        setup.distributed = distributed;
        setup.hop_ms = hop;
        TR_ASSERT_OK_AND_ASSIGN(const SimulationResult result, Simulate(setup, policy));
        EXPECT_GT(result.committed_per_s, .8 * one_pair);
        EXPECT_LT(result.gap_p99_ms, 200);
      }
    }
  }
}

TEST(SimulatorTest, WorkersWithoutRequestsChangeNothing) {
  SimulationSetup setup = Gpu(1, .2);
  const double one = Simulate(setup, {.kind = Kind::kModel})->committed_per_s;
  setup.small_workers = setup.large_workers = 4;
  EXPECT_EQ(Simulate(setup, {.kind = Kind::kModel})->committed_per_s, one);
}

// This holds as long as the scheduler foresees the small step that starts when both sides are idle.
TEST(SimulatorTest, TheDistributedFormKeepsTheGain) {
  SimulationSetup setup = Gpu(16, .4);
  const double greedy = Simulate(setup, {})->committed_per_s;
  const double knows_both = Simulate(setup, {.kind = Kind::kModel})->committed_per_s;
  setup.distributed = true;
  EXPECT_EQ(Simulate(setup, {})->committed_per_s, greedy);
  const double distributed = Simulate(setup, {.kind = Kind::kModel})->committed_per_s;
  EXPECT_GT(knows_both / greedy, 1.06);
  EXPECT_GT(distributed / greedy, 1.06);
}

// T is what an arriving row saves: where it is next to nothing, no row waits for any.
TEST(SimulatorTest, TheMeanStepsOfThePlanDecideHowLongRowsWait) {
  SimulationSetup setup = Gpu(16, .4);
  setup.distributed = true;
  const SimulationResult greedy = *Simulate(setup, {});
  const auto with = [&](double small_ms, double large_ms) {
    return *Simulate(setup,
                     {.kind = Kind::kModel, .step_small_ms = small_ms, .step_large_ms = large_ms});
  };
  EXPECT_EQ(with(.01, .01).committed_per_s, greedy.committed_per_s);
  EXPECT_GT(with(.01, 24).mean_batch_large, 1.05 * greedy.mean_batch_large);
  EXPECT_GT(with(24, .01).mean_batch_small, 1.05 * greedy.mean_batch_small);
}

TEST(SimulatorTest, AChangeOfSidesTakesTheHandoffLatencyOnASharedDevice) {
  SimulationSetup setup{.small = Affine(3, 0),
                        .large = Affine(15, 0),
                        .shared_device = true,
                        .requests = 1,
                        .r = .5,
                        .duration_ms = 1e6};
  const double without = Simulate(setup, {})->committed_per_s;
  setup.hop_ms = 9;
  // Per cycle two small steps, a large one and two changes: 21 and 39 ms.
  EXPECT_NEAR(without / Simulate(setup, {})->committed_per_s, 39.0 / 21, 0.02);
}

TEST(SimulatorTest, AStepTakesOnlyTheRowsThatFitItsTime) {
  SimulationSetup setup{.small = Affine(3, 0),
                        .large = Affine(0, 10),
                        .shared_device = true,
                        .requests = 8,
                        .r = .5,
                        .duration_ms = 1e5};
  const BatchingPolicy policy{.kind = Kind::kStatic, .m_large = 4};
  EXPECT_GT(Simulate(setup, policy)->mean_batch_large, 3);
  setup.max_step_ms = 29;
  const SimulationResult two_fit = *Simulate(setup, policy);
  EXPECT_LE(two_fit.mean_batch_large, 2);
  EXPECT_GT(two_fit.mean_batch_large, 1.5);
  setup.max_step_ms = 5;  // Shorter than a step of one row, which runs all the same.
  EXPECT_EQ(Simulate(setup, policy)->mean_batch_large, 1);
}

// Most rows wait for the large side and each is a separate step: after every one the small side
// gets the device.
TEST(SimulatorTest, TheSmallSideGoesFirstAfterACutLargeStep) {
  const SimulationSetup setup{.small = Affine(1, 0),
                              .large = Affine(0, 100),
                              .shared_device = true,
                              .requests = 8,
                              .r = .9,
                              .max_step_ms = 150,
                              .duration_ms = 1e6};
  const SimulationResult result = *Simulate(setup, {});          // Greedy: the large side first.
  EXPECT_GT(result.busy_small * 100 / result.busy_large, 0.95);  // Steps of one per step of other.
}

TEST(SimulatorTest, RefusesWhatCannotRun) {
  SimulationSetup setup{.small = Affine(3, 0), .large = Affine(15, 0), .requests = 2, .r = 0.1};
  EXPECT_THAT(Simulate(setup, {.kind = Kind::kStatic, .m_small = 2, .m_large = 2}),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("requests + 1")));
  setup.large_workers = 65;
  EXPECT_THAT(Simulate(setup, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            ::testing::HasSubstr("large_workers is 65")));
  setup.large_workers = 2;
  setup.shared_device = true;
  EXPECT_THAT(Simulate(setup, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            ::testing::HasSubstr("1 on a shared device")));
  setup = {.small = Affine(3, 0), .large = Affine(15, 0), .requests = 2, .r = 0};
  EXPECT_THAT(Simulate(setup, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("r is 0")));
}

}  // namespace
}  // namespace tokenrouter
