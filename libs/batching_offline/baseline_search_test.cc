#include "libs/batching_offline/baseline_search.h"

#include "libs/batching_model/policy_name.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

SimulationSetup Load(int requests, double r, bool shared) {
  return {.small = [](int rows, int64_t) { return 6 + .02 * rows; },
          .large = [](int rows, int64_t) { return 24 + .1 * rows; },
          .shared_device = shared,
          .requests = requests,
          .r = r,
          .noise_cv = .02};
}

double Score(SimulationSetup setup, const BatchingPolicy& policy) {
  setup.desynchronised = true;
  setup.seed = 9;
  setup.duration_ms = 2e5;
  return Simulate(setup, policy)->rows_per_s;
}

TEST(BaselineSearchTest, FindsTheStaticThresholdOfAPhaseLock) {
  // 10.1 % over greedy in the batching model, section 3.
  const SimulationSetup setup = Load(4, .4, false);
  TR_ASSERT_OK_AND_ASSIGN(const BatchingPolicy best, BestOfFamily(setup, Kind::kStatic));
  EXPECT_GT(Score(setup, best) / Score(setup, {}), 1.06);
}

TEST(BaselineSearchTest, FindsWaitsForASharedDevice) {
  const SimulationSetup setup = Load(16, .1, true);
  for (const Kind kind : {Kind::kStatic, Kind::kFixedWait, Kind::kModel}) {
    TR_ASSERT_OK_AND_ASSIGN(const BatchingPolicy best, BestOfFamily(setup, kind));
    EXPECT_EQ(best.kind, kind);
    EXPECT_GT(Score(setup, best) / Score(setup, {}), 1.9) << PolicyName(kind);
  }
}

// The model against every baseline at its best: what the tuner promises, on a few loads.
TEST(BaselineSearchTest, TheModelIsNeverMuchBelowTheBestBaseline) {
  for (const bool shared : {false, true}) {
    for (const int requests : {2, 16}) {
      for (const double r : {.1, .4}) {
        SCOPED_TRACE(::testing::Message() << shared << " " << requests << " " << r);
        const SimulationSetup setup = Load(requests, r, shared);
        TR_ASSERT_OK_AND_ASSIGN(const BatchingPolicy model, BestOfFamily(setup, Kind::kModel));
        const double of_model = Score(setup, model);
        for (const Kind kind : AllPolicyKinds()) {
          TR_ASSERT_OK_AND_ASSIGN(const BatchingPolicy policy, BestOfFamily(setup, kind));
          EXPECT_GT(of_model / Score(setup, policy), 0.99) << PolicyName(kind);
        }
      }
    }
  }
}

TEST(PolicyNameTest, EveryNameIsReadBack) {
  for (const Kind kind : AllPolicyKinds()) {
    TR_ASSERT_OK_AND_ASSIGN(const Kind back, ParsePolicyKind(PolicyName(kind)));
    EXPECT_EQ(back, kind);
  }
  EXPECT_THAT(ParsePolicyKind("eager"), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 ::testing::HasSubstr("model, greedy, static")));
}

TEST(PolicyNameTest, DescriptionShowsTheParametersThatCount) {
  EXPECT_EQ(
      DescribePolicy({.kind = Kind::kModel, .step_small_ms = 3.1, .step_large_ms = 20}, false),
      "model steps 3.1,20 ms");
  EXPECT_EQ(DescribePolicy({.kind = Kind::kModel, .m_large = 9}, true), "model m=9");
  EXPECT_EQ(DescribePolicy({.kind = Kind::kStatic, .m_small = 1, .m_large = 4}, false),
            "static 1,4");
}

}  // namespace
}  // namespace tokenrouter
