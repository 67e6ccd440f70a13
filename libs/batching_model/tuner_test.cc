#include "libs/batching_model/tuner.h"

#include <algorithm>
#include <vector>

#include "libs/batching_model/affine_fixture.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

struct Set {
  const char* name;
  StepCost small, large;
};

std::vector<Set> Sets() {
  return {{"h200", Affine(3, .01), Affine(15, .02, .128)},
          {"8b", Affine(2.5, .004), Affine(5, .01, .032)},
          {"cpu", Affine(22, 7.2), Affine(45, 1, 19)},
          {"resonant", Affine(6, 0), Affine(24, 0)},
          {"roofline", [](int rows, int64_t) { return std::max(6.0, 6.0 * rows / 64); },
           [](int, int64_t ids) { return std::max(24.0, .075 * static_cast<double>(ids)); }}};
}

// A longer run with a separate seed and steps that vary by 3 %.
double Score(SimulationSetup setup, const BatchingPolicy& policy) {
  setup.noise_cv = .03;
  setup.duration_ms = 1e12;
  setup.max_steps = 50000;
  setup.max_rows = 800000;
  setup.desynchronised = true;
  setup.seed = 77;
  return Simulate(setup, policy)->committed_per_s;
}

TEST(TunerTest, NeverLosesToGreedy) {
  for (const Set& set : Sets()) {
    for (const int requests : {1, 4, 32}) {
      for (const bool shared : {false, true}) {
        SCOPED_TRACE(::testing::Message() << set.name << " " << requests << " " << shared);
        SimulationSetup setup{.small = set.small,
                              .large = set.large,
                              .shared_device = shared,
                              .requests = requests,
                              .r = .1};
        TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy tuned, Tune(setup));
        EXPECT_GT(Score(setup, tuned.policy) / Score(setup, {}), 0.997);
        EXPECT_GE(tuned.predicted.committed_per_s, tuned.greedy_committed_per_s);
      }
    }
  }
}

TEST(TunerTest, FindsTheGainOfASharedDevice) {
  const SimulationSetup setup{.small = Affine(3, .01),
                              .large = Affine(15, .02, .128),
                              .shared_device = true,
                              .requests = 16,
                              .r = .1};
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy tuned, Tune(setup));
  EXPECT_EQ(tuned.policy.kind, BatchingPolicy::Kind::kModel);
  EXPECT_NEAR(Score(setup, tuned.policy) / AloneRate(setup.large, 16), 1.95, 0.06);
}

// Two cores, two models: a step of nine large rows would last 340 ms and may last 200.
TEST(TunerTest, WaitsForNoMoreLargeRowsThanAStepTakes) {
  SimulationSetup setup{.small = Affine(15, 0, .9),
                        .large = Affine(50, 0, 2.8),
                        .shared_device = true,
                        .requests = 16,
                        .r = .11,
                        .max_step_ms = 200};
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy tuned, Tune(setup));
  EXPECT_LE(tuned.policy.m_large, 6);
  const BatchingPolicy too_many{.kind = BatchingPolicy::Kind::kModel, .m_large = 9};
  EXPECT_GT(Score(setup, tuned.policy) / Score(setup, too_many), 1.03);
  // A step takes two rows: all shares of the formula's threshold, which has no limit, exceed that.
  setup.max_step_ms = 110;
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy short_turns, Tune(setup));
  EXPECT_LE(short_turns.policy.m_large, 3);
  EXPECT_GT(Score(setup, short_turns.policy) / Score(setup, {}), 1.01)
      << "greedy is not the only policy left";
}

TEST(TunerTest, FindsTheGainOfTwoDevices) {
  const SimulationSetup setup{
      .small = Affine(6, .02), .large = Affine(24, .1), .requests = 8, .r = .4, .noise_cv = .05};
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy tuned, Tune(setup));
  EXPECT_GT(Score(setup, tuned.policy) / Score(setup, {}), 1.05);
}

TEST(TunerTest, TakesStaticThresholdsWhereTheyKeepBothSidesInPhase) {
  const Set roofline = Sets().back();
  SimulationSetup setup{.small = roofline.small,
                        .large = roofline.large,
                        .distributed = true,
                        .requests = 16,
                        .r = .4,
                        .hop_ms = .3};
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy tuned, Tune(setup));
  EXPECT_EQ(tuned.policy.kind, BatchingPolicy::Kind::kStatic);
  EXPECT_GT(Score(setup, tuned.policy) / Score(setup, {.kind = BatchingPolicy::Kind::kModel}),
            1.01);
  setup.hop_ms = 0;
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy near, Tune(setup));
  EXPECT_EQ(near.policy.kind, BatchingPolicy::Kind::kModel);
}

TEST(TunerTest, RepeatsItselfAndBoundsWhatItSimulates) {
  const SimulationSetup setup{
      .small = Affine(3, .01), .large = Affine(15, .02, .128), .requests = 512, .r = .05};
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy first, Tune(setup));
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy second, Tune(setup));
  EXPECT_EQ(first.predicted.committed_per_s, second.predicted.committed_per_s);
  // Every decision evaluates the cost, so the number of evaluations measures the work done.
  int64_t asked = 0;
  SimulationSetup counted = setup;
  counted.large = [&](int rows, int64_t ids) {
    ++asked;
    return setup.large(rows, ids);
  };
  TR_ASSERT_OK_AND_ASSIGN(const TunedPolicy third, Tune(counted));
  EXPECT_EQ(third.policy.step_large_ms, first.policy.step_large_ms);
  EXPECT_LT(asked, 1000000);
}

TEST(TunerTest, RefusesWhatCannotBeSimulated) {
  const SimulationSetup setup{.small = Affine(3, 0), .large = Affine(15, 0), .requests = 4, .r = 1};
  EXPECT_THAT(Tune(setup),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("r is 1")));
}

}  // namespace
}  // namespace tokenrouter
