#include "libs/synthetic/fake_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<TokenId>;

class FakeEngineTest : public testing::Test {
 protected:
  FakeEngineTest() : engine_({}, [this](absl::Duration time) { waits_.push_back(time); }) {
    context_.parameters.temperature = 0.0f;
  }

  absl::Status Extend(SequenceId sequence, const Ids& ids, int choices = 1) {
    return engine_.Step({{{.sequence = sequence,
                           .first = engine_.Length(sequence),
                           .new_ids = ids,
                           .choices = choices,
                           .sampling = &context_}}},
                        &result_);
  }

  std::vector<absl::Duration> waits_;
  FakeEngine engine_;
  SamplingContext context_;
  StepResult result_;
};

TEST_F(FakeEngineTest, SaysItsScriptAsLongAsItIsFollowed) {
  engine_.Script(Ids{1, 2}, std::vector<ScriptedToken>{{.id = 10, .entropy = 0.2f}, {.id = 11}});
  ASSERT_THAT(Extend({1}, {1, 2}), IsOk());
  EXPECT_EQ(result_.choices[0][0].id, 10);
  EXPECT_EQ(result_.choices[0][0].signals.entropy, 0.2f);
  ASSERT_THAT(Extend({1}, {10}), IsOk());
  EXPECT_EQ(result_.choices[0][0].id, 11);
  engine_.Truncate({1}, 2);
  ASSERT_THAT(Extend({1}, {9}), IsOk());
  EXPECT_NE(result_.choices[0][0].id, 11);
}

TEST_F(FakeEngineTest, ScriptHoldsInEveryChoiceOfARow) {
  engine_.Script(Ids{1}, std::vector<ScriptedToken>{{.id = 10}, {.id = 11}, {.id = 12}});
  ASSERT_THAT(Extend({1}, {1, 10, 11}, 3), IsOk());
  std::vector<TokenId> ids;
  for (const Choice& choice : result_.choices[0]) ids.push_back(choice.id);
  EXPECT_THAT(ids, ElementsAre(10, 11, 12));
}

TEST_F(FakeEngineTest, FailsTheChosenStepAndTakesNothing) {
  engine_.FailStep(2, absl::ResourceExhaustedError("full"));
  ASSERT_THAT(Extend({1}, {1}), IsOk());
  EXPECT_THAT(Extend({1}, {2}), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(engine_.Length({1}), 1);
  EXPECT_THAT(Extend({1}, {2}), IsOk());
  EXPECT_EQ(engine_.steps(), 3);
}

TEST_F(FakeEngineTest, FailsEveryStepUntilTheFaultEnds) {
  engine_.FailAllSteps(absl::InternalError("device lost"));
  EXPECT_THAT(Extend({1}, {1}), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Extend({1}, {1}), StatusIs(absl::StatusCode::kInternal));
  engine_.FailAllSteps(absl::OkStatus());
  EXPECT_THAT(Extend({1}, {1}), IsOk());
}

TEST_F(FakeEngineTest, WaitsInTheSlowStepOnly) {
  engine_.SlowStep(2, absl::Seconds(3));
  ASSERT_THAT(Extend({1}, {1}), IsOk());
  EXPECT_TRUE(waits_.empty());
  ASSERT_THAT(Extend({1}, {1}), IsOk());
  ASSERT_THAT(Extend({1}, {1}), IsOk());
  EXPECT_THAT(waits_, ElementsAre(absl::Seconds(3)));
}

TEST_F(FakeEngineTest, UndoesAStepWhoseSamplingFails) {
  context_.stop_ids.resize(1000);
  for (TokenId id = 0; id < 1000; ++id) context_.stop_ids[id] = id;
  context_.mask_stop_ids_before = 100;
  const int64_t free = engine_.unallocated_blocks();
  EXPECT_THAT(Extend({1}, {1, 2, 3}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(engine_.unallocated_blocks(), free);
  EXPECT_EQ(engine_.Length({1}), 0);
  context_.mask_stop_ids_before = 0;
  EXPECT_THAT(Extend({1}, {1, 2, 3}), IsOk());
}

}  // namespace
}  // namespace tokenrouter
