#include "services/scheduler/pair_model/pair_model.h"

#include <gtest/gtest.h>

#include "libs/status/status_matchers.h"
#include "services/scheduler/pair_model/testing/taught_curve.h"

namespace tokenrouter {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

// Memory-bound at one request, compute-bound at sixteen.
PairModel Taught() {
  PairModel model{PairModelOptions{}};
  Teach(&model.mutable_seen(), Role::kSmall, 10, 1, 1);
  Teach(&model.mutable_seen(), Role::kLarge, 40, .5, 3);
  model.mutable_seen().SetTopology(/*shared_device=*/true, absl::InfiniteDuration());
  model.mutable_seen().ObserveRows(Role::kSmall, 1000, 100);
  return model;
}

// Makes the plans that the model wants until `until`; returns their number.
int Serve(PairModel* model, int32_t live, absl::Time from, absl::Time until) {
  int plans = 0;
  for (absl::Time now = from; now < until; now += absl::Milliseconds(10)) {
    const auto wanted = model->Wanted(live, now);
    if (!wanted) continue;
    const auto plan = MakePlan(*wanted);
    EXPECT_TRUE(plan.ok());
    model->Adopt(*plan, absl::Milliseconds(5), now);
    ++plans;
  }
  return plans;
}

TEST(PairModelTest, WantsNoPlanBeforeBothCurvesAreKnown) {
  PairModel model{PairModelOptions{}};
  Teach(&model.mutable_seen(), Role::kSmall, 10, 2, 0);
  EXPECT_EQ(model.Wanted(4, kStart), std::nullopt);
  EXPECT_EQ(model.mode(), ServiceMode::kRouted);
  EXPECT_EQ(model.Policy(8).kind, BatchingPolicy::Kind::kGreedy);
}

TEST(PairModelTest, ASharedDeviceHasAThresholdBeforeAnyPlan) {
  PairModel model{PairModelOptions{}};
  model.mutable_seen().SetTopology(/*shared_device=*/true, absl::InfiniteDuration());
  EXPECT_EQ(model.Policy(10).m_large, 4);
  EXPECT_EQ(model.Policy(0).m_large, 1);
}

TEST(PairModelTest, PlansOnceAndAgainOnlyWhenTheLoadMoves) {
  PairModel model = Taught();
  EXPECT_EQ(Serve(&model, 8, kStart, kStart + absl::Seconds(5)), 1);
  EXPECT_EQ(Serve(&model, 9, kStart + absl::Seconds(5), kStart + absl::Seconds(10)), 0);
  EXPECT_EQ(Serve(&model, 16, kStart + absl::Seconds(10), kStart + absl::Seconds(15)), 1);
}

TEST(PairModelTest, ALoadThatComesBackNeedsNoNewPlan) {
  PairModel model = Taught();
  Serve(&model, 2, kStart, kStart + absl::Seconds(5));
  Serve(&model, 16, kStart + absl::Seconds(5), kStart + absl::Seconds(10));
  EXPECT_EQ(Serve(&model, 2, kStart + absl::Seconds(10), kStart + absl::Seconds(12)), 0);
  EXPECT_EQ(model.plans().plan()->inputs.requests, 2);
}

TEST(PairModelTest, PlansAnewWhenTheAlgorithmRoutesMore) {
  PairModel model = Taught();
  Serve(&model, 8, kStart, kStart + absl::Seconds(1));
  model.mutable_seen().ObserveRows(Role::kSmall, 2000, 800);
  EXPECT_EQ(Serve(&model, 8, kStart + absl::Seconds(1), kStart + absl::Seconds(2)), 1);
}

TEST(PairModelTest, RatesThatMoveWhileAPlanIsMadeAskForAnother) {
  PairModel model = Taught();
  const auto wanted = model.Wanted(8, kStart);
  ASSERT_TRUE(wanted.has_value());
  model.mutable_seen().ObserveRows(Role::kSmall, 2000, 800);
  model.Adopt(*MakePlan(*wanted), absl::Milliseconds(5), kStart + absl::Milliseconds(50));
  EXPECT_TRUE(model.Wanted(8, kStart + absl::Seconds(1)).has_value());
}

TEST(PairModelTest, SpendsAtMostItsShareOnPlans) {
  PairModel model = Taught();
  int plans = 0;
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = kStart + i * absl::Milliseconds(10);
    const auto wanted = model.Wanted(1 + (i % 7) * (i % 7), now);
    if (!wanted) continue;
    ++plans;
    model.Adopt(std::nullopt, absl::Milliseconds(40), now);
  }
  EXPECT_LE(plans, 10000 / 800 + 1);
}

TEST(PairModelTest, ServesLargeOnlyWhereTheLargeModelIsBoundByCompute) {
  PairModel model = Taught();
  Serve(&model, 1, kStart, kStart + absl::Seconds(1));
  EXPECT_EQ(model.mode(), ServiceMode::kRouted);
  Serve(&model, 32, kStart + absl::Seconds(1), kStart + absl::Seconds(5));
  EXPECT_EQ(model.mode(), ServiceMode::kLargeAlone);
  EXPECT_GE(model.mode_choice().switches(), 1u);
  Serve(&model, 1, kStart + absl::Seconds(5), kStart + absl::Seconds(6.5));
  EXPECT_EQ(model.mode(), ServiceMode::kRouted) << "a load that has fallen is followed soon";
}

TEST(PairModelTest, StaysRoutedWhileACurveIsUnsure) {
  PairModel model{PairModelOptions{}};
  Teach(&model.mutable_seen(), Role::kSmall, 10, 2, 0);
  for (const int rows : {1, 1, 2}) {
    model.mutable_seen().ObserveStep(Role::kLarge, rows, 4 * rows,
                                     absl::Milliseconds(rows == 2 ? 30 : 60));
  }
  Serve(&model, 16, kStart, kStart + absl::Seconds(5));
  EXPECT_TRUE(model.plans().plan().has_value());
  EXPECT_EQ(model.mode(), ServiceMode::kRouted);
}

TEST(PairModelTest, StaysRoutedUntilItHasSeenTheAlgorithm) {
  PairModel model{PairModelOptions{}};
  Teach(&model.mutable_seen(), Role::kSmall, 10, 2, 0);
  Teach(&model.mutable_seen(), Role::kLarge, 40, .5, 3);
  model.mutable_seen().SetTopology(/*shared_device=*/true, absl::InfiniteDuration());
  model.mutable_seen().ObserveRows(Role::kSmall, 10, 9);
  Serve(&model, 16, kStart, kStart + absl::Seconds(5));
  EXPECT_EQ(model.mode(), ServiceMode::kRouted);
}

TEST(PairModelTest, LargeOnlyServiceIsProbedNowAndThen) {
  PairModel model = Taught();
  const absl::Time begun = kStart + absl::Seconds(5);
  Serve(&model, 32, kStart, begun);
  ASSERT_EQ(model.mode(), ServiceMode::kLargeAlone);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(model.TakeProbe(begun));
  EXPECT_TRUE(model.TakeProbe(begun + absl::Seconds(10)));
}

TEST(PairModelTest, LeavesAModeThatYieldsLessThanItsPlanSaid) {
  PairModel model = Taught();
  absl::Time now = kStart;
  Serve(&model, 1, kStart, now += absl::Seconds(1));
  ASSERT_EQ(model.mode(), ServiceMode::kRouted);
  const ModePrediction promised = model.plans().plan()->prediction;
  for (int second = 0; second < 20; ++second) {
    const bool routed = model.mode() == ServiceMode::kRouted;
    const double committed = routed ? .25 * promised.routed_per_s : promised.large_alone_per_s;
    model.ObserveCommitted(static_cast<int64_t>(committed));
    Serve(&model, 1, now, now + absl::Seconds(1));
    now += absl::Seconds(1);
  }
  EXPECT_LT(model.mode_choice().rates().Measured(ServiceMode::kRouted, 1),
            .6 * promised.routed_per_s);
  EXPECT_EQ(model.mode(), ServiceMode::kLargeAlone);
}

TEST(PairModelTest, ALongPromptOfAShortAnswerIsNotWorthRouting) {
  PairModel model = Taught();
  EXPECT_TRUE(model.PromptWorthRouting(100000, 1)) << "nothing is known yet";
  Serve(&model, 1, kStart, kStart + absl::Seconds(1));
  EXPECT_TRUE(model.PromptWorthRouting(16, 1000));
  EXPECT_FALSE(model.PromptWorthRouting(8000, 40));
}

TEST(PairModelTest, PromptsCountInWhatAModeIsPredictedToMake) {
  PairModel short_answers = Taught(), long_answers = Taught();
  for (int i = 0; i < 10; ++i) {
    short_answers.ObserveBegun(/*uncomputed_ids=*/3000, /*most_tokens=*/20);
    long_answers.ObserveBegun(/*uncomputed_ids=*/3000, /*most_tokens=*/200);
  }
  Serve(&short_answers, 1, kStart, kStart + absl::Seconds(1));
  Serve(&long_answers, 1, kStart, kStart + absl::Seconds(1));
  EXPECT_EQ(short_answers.mode(), ServiceMode::kLargeAlone);
  EXPECT_EQ(long_answers.mode(), ServiceMode::kRouted);
  EXPECT_EQ(short_answers.plans().plan()->prediction.Better(), ServiceMode::kRouted)
      << "decoding alone";
  for (int i = 0; i < 1000; ++i) short_answers.mutable_seen().ObserveFinished(200);
  Serve(&short_answers, 1, kStart + absl::Seconds(1), kStart + absl::Seconds(5));
  EXPECT_EQ(short_answers.mode(), ServiceMode::kRouted) << "its limits were far from its lengths";
}

TEST(PairModelTest, TheThresholdScalesWithTheRequests) {
  PairModel model = Taught();
  Serve(&model, 16, kStart, kStart + absl::Seconds(1));
  const int m = model.Policy(16).m_large;
  EXPECT_NEAR(model.Policy(8).m_large, m / 2.0, 1);
  EXPECT_GE(model.Policy(1).m_large, 1);
}

TEST(PairModelTest, WaitsForNoMoreRowsThanAStepMayTake) {
  PairModel model = Taught();
  Serve(&model, 16, kStart, kStart + absl::Seconds(1));
  ASSERT_GT(model.Policy(16).m_large, 1);
  const double one_row = model.seen().PredictMs(Role::kLarge, 1, 10);
  model.mutable_seen().SetTopology(/*shared_device=*/true, absl::Milliseconds(1.2 * one_row));
  Serve(&model, 16, kStart + absl::Seconds(1), kStart + absl::Seconds(2));
  EXPECT_EQ(model.Policy(16).m_large, 1) << "a plan is made anew when that changes";
}

TEST(PairModelTest, BothThresholdsOfAStaticPlanScale) {
  PairModel model{PairModelOptions{}};
  const PairPlan plan = {
      .inputs = {.requests = 20},
      .prediction = {
          .policy = {.kind = BatchingPolicy::Kind::kStatic, .m_small = 2, .m_large = 13}}};
  model.Adopt(plan, absl::ZeroDuration(), kStart);
  EXPECT_EQ(model.Policy(40).m_small, 4);
  EXPECT_EQ(model.Policy(40).m_large, 26);
  EXPECT_EQ(model.Policy(3).m_small, 1);
  EXPECT_EQ(model.Policy(3).m_large, 2);
}

}  // namespace
}  // namespace tokenrouter
