#include "services/scheduler/request/request_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/request/row_check.h"
#include "services/scheduler/request/side_commands.h"
#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using S = ScriptedScheduler;

constexpr Position kWindow = 16;

class RequestMachineTest : public ::testing::Test {
 protected:
  static RequestMachine Make(RequestGrant grant = {}) {
    wire::GenerationSpec spec;
    spec.set_prompt_length(3);
    return RequestMachine({.key = 1}, spec, TokenHistory({1, 2, 3}), "", std::move(grant), kWindow);
  }
  void Run(Role role) {
    wire::Open open;
    FillOpen(&machine_, role, role == Role::kSmall ? 10 : 20, 1, &open);
    machine_.SetPhase(Phase::kRunning, now_);
  }
  void Accept(Role role, const wire::RowReport& row) {
    ASSERT_FALSE(RefusesRow(machine_, role, machine_.side(role).worker, row).has_value());
    machine_.Accept(role, row);
  }

  bool Acknowledge(Position position) {
    ClientState& client = machine_.mutable_service().client;
    return client.Acknowledge(position, machine_.history().committed(), now_);
  }

  const absl::Time now_ = absl::UnixEpoch();
  RequestMachine machine_ = Make();
};

TEST_F(RequestMachineTest, OpensWithAGrowingEpochAndTheWholeHistory) {
  wire::Open open;
  FillOpen(&machine_, Role::kSmall, 10, 1, &open);
  EXPECT_EQ(open.epoch(), 1u);
  EXPECT_EQ(open.credit(), 3 + kWindow);
  EXPECT_TRUE(open.has_grant());
  machine_.mutable_side(Role::kSmall).Lose(ReopenCause::kWorkerLost);
  FillOpen(&machine_, Role::kSmall, 11, 1, &open);
  EXPECT_EQ(open.epoch(), 2u);
  wire::Open large;
  FillOpen(&machine_, Role::kLarge, 20, 1, &large);
  EXPECT_EQ(large.epoch(), 1u);
  EXPECT_FALSE(large.has_grant()) << "it does not hold the decode grant";
}

TEST_F(RequestMachineTest, CountsWhatASideMustComputeBeforeItAnswers) {
  Run(Role::kSmall);
  EXPECT_EQ(Uncomputed(machine_, Role::kSmall), 3) << "the prompt";
  Accept(Role::kSmall, S::Row(1, 1, 3, {7}));
  EXPECT_EQ(Uncomputed(machine_, Role::kSmall), 1) << "the token that it sampled last";
  Accept(Role::kSmall, S::HandingOff(S::Row(1, 1, 4, {8}), Role::kLarge));
  wire::DecodeGrant terms;
  machine_.SetGrant({.role = Role::kLarge, .terms = terms});
  Run(Role::kLarge);
  EXPECT_EQ(Uncomputed(machine_, Role::kLarge), 5);
  Accept(Role::kLarge, S::HandingOff(S::Row(1, 1, 5, {9}, 2), Role::kSmall));
  EXPECT_EQ(Uncomputed(machine_, Role::kSmall), 2) << "its own last token and the other side's";
  machine_.SetGrant({});
  wire::Extend extend;
  FillExtend(&machine_, Role::kSmall, &extend);
  EXPECT_EQ(Uncomputed(machine_, Role::kSmall), 2) << "ids that were sent are not computed yet";
  Accept(Role::kSmall, S::HandingOff(S::Row(1, 1, 6, {}), Role::kLarge));
  EXPECT_EQ(Uncomputed(machine_, Role::kSmall), 1)
      << "all is computed, but a step has at least one id";
  EXPECT_EQ(Uncomputed(machine_, Role::kLarge), 1) << "its own last token";
  machine_.mutable_side(Role::kLarge).Lose(ReopenCause::kWorkerLost);
  EXPECT_EQ(Uncomputed(machine_, Role::kLarge), 6);
}

TEST_F(RequestMachineTest, CountsDownATokenWindowForAReopen) {
  Run(Role::kSmall);
  wire::DecodeGrant terms;
  terms.mutable_window()->set_kind(wire::Window::KIND_TOKENS);
  terms.mutable_window()->set_tokens(5);
  machine_.SetGrant({.terms = terms});
  Accept(Role::kSmall, S::Row(1, 1, 3, {7, 8}));
  wire::Open open;
  FillOpen(&machine_, Role::kSmall, 11, 1, &open);
  EXPECT_EQ(open.grant().window().tokens(), 3);
}

TEST_F(RequestMachineTest, RepeatsTailAndVerificationAtAReopenUntilTheyAreAnswered) {
  Run(Role::kSmall);
  Accept(Role::kSmall, S::HandingOff(S::Row(1, 1, 3, {7}), Role::kLarge, {60, 61}));
  wire::DecodeGrant terms;
  terms.set_verify(2);
  machine_.SetGrant({.role = Role::kLarge, .terms = terms});
  for (uint32_t epoch = 1; epoch <= 2; ++epoch) {
    wire::Open open;
    FillOpen(&machine_, Role::kLarge, 20, 1, &open);
    EXPECT_THAT(open.ids(), ElementsAre(1, 2, 3, 7, 60, 61));
    EXPECT_EQ(open.tail(), 2);
    EXPECT_EQ(open.grant().verify(), 2);
  }
  // A credit-blocked report before it ran answers nothing.
  machine_.SetPhase(Phase::kReleasable, now_);
  wire::RowReport credit_blocked = S::Row(1, 2, 4, {});
  credit_blocked.set_credit_blocked(true);
  Accept(Role::kLarge, credit_blocked);
  EXPECT_EQ(machine_.history().tail().size(), 2u);
  EXPECT_EQ(machine_.grant().terms.verify(), 2);
  machine_.SetPhase(Phase::kRunning, now_);
  Accept(Role::kLarge, S::Row(1, 2, 4, {60, 70}, 2));
  EXPECT_EQ(machine_.history().tail().size(), 0u);
  EXPECT_EQ(machine_.grant().terms.verify(), 0);
}

TEST_F(RequestMachineTest, RemembersWhatTheOtherSideKnowsOfANewHistory) {
  Run(Role::kSmall);
  wire::Open open;
  FillOpen(&machine_, Role::kLarge, 20, 1, &open);
  Accept(Role::kSmall, S::HandingOff(S::Row(1, 1, 3, {}), Role::kLarge, {60, 61, 62}));
  EXPECT_EQ(machine_.side(Role::kSmall).known, 6);
  EXPECT_EQ(machine_.side(Role::kLarge).known, 3);
  machine_.SetGrant({.role = Role::kLarge});
  wire::Extend extend;
  FillExtend(&machine_, Role::kLarge, &extend);
  EXPECT_EQ(extend.base(), 3);
  EXPECT_EQ(extend.tail(), 3);
  Accept(Role::kLarge, S::Row(1, 1, 3, {60, 70}, 2));
  EXPECT_EQ(machine_.side(Role::kSmall).known, 4);
  EXPECT_EQ(machine_.side(Role::kLarge).known, 5);
}

TEST_F(RequestMachineTest, IsCreditBlockedOnlyAtTheCreditThatItWasSent) {
  Run(Role::kSmall);
  wire::RowReport row = S::Row(1, 1, 3, {7});
  row.set_credit_blocked(true);
  Accept(Role::kSmall, row);
  EXPECT_FALSE(machine_.credit_blocked()) << "a newer credit is on its way";
  std::vector<TokenId> ids(kWindow - 1, 7);
  row = S::Row(1, 1, 4, ids);
  row.set_credit_blocked(true);
  Accept(Role::kSmall, row);
  EXPECT_TRUE(machine_.credit_blocked());
  EXPECT_TRUE(Acknowledge(10));
  EXPECT_FALSE(RaiseCredit(&machine_, Role::kSmall, false).has_value());
  EXPECT_TRUE(Acknowledge(11));
  EXPECT_EQ(RaiseCredit(&machine_, Role::kSmall, false), 11 + kWindow);
  EXPECT_FALSE(machine_.credit_blocked());
}

TEST_F(RequestMachineTest, IgnoresAcknowledgementsBackwardsAndBeyondTheEnd) {
  Run(Role::kSmall);
  Accept(Role::kSmall, S::Row(1, 1, 3, {7, 8}));
  EXPECT_TRUE(Acknowledge(99));
  EXPECT_EQ(machine_.service().client.acked, 5);
  EXPECT_FALSE(Acknowledge(4));
  EXPECT_FALSE(Acknowledge(99));
}

TEST_F(RequestMachineTest, MarksAnswersAcrossNumericsClassesOnceTokensExist) {
  wire::Open open;
  FillOpen(&machine_, Role::kSmall, 10, 1, &open);
  FillOpen(&machine_, Role::kSmall, 11, 2, &open);
  EXPECT_FALSE(machine_.service().degraded) << "nothing was written yet";
  machine_.SetPhase(Phase::kRunning, now_);
  Accept(Role::kSmall, S::Row(1, 2, 3, {7}));
  FillOpen(&machine_, Role::kSmall, 12, 2, &open);
  EXPECT_FALSE(machine_.service().degraded);
  FillOpen(&machine_, Role::kSmall, 13, 1, &open);
  EXPECT_TRUE(machine_.service().degraded);
}

TEST_F(RequestMachineTest, ForgetsTheTailWhenTheSmallModelTakesOver) {
  Run(Role::kSmall);
  Accept(Role::kSmall, S::HandingOff(S::Row(1, 1, 3, {7}), Role::kLarge, {60, 61}));
  machine_.SetGrant({.role = Role::kLarge});
  machine_.FallBackToSmall();
  EXPECT_EQ(machine_.grant().role, Role::kSmall);
  EXPECT_EQ(machine_.grant().terms.window().kind(), wire::Window::KIND_UNTIL_END);
  EXPECT_TRUE(machine_.service().degraded);
  wire::Extend extend;
  FillExtend(&machine_, Role::kSmall, &extend);
  EXPECT_EQ(extend.base(), 4);
  EXPECT_EQ(extend.ids_size(), 0);
}

TEST_F(RequestMachineTest, LetsAWorkerFailBeforeItsReleaseButNotWrite) {
  machine_.SetGrant({.role = Role::kLarge});
  wire::Open open;
  FillOpen(&machine_, Role::kLarge, 20, 1, &open);
  machine_.SetPhase(Phase::kReleasable, now_);
  EXPECT_EQ(RefusesRow(machine_, Role::kLarge, 20, S::Row(1, 1, 3, {7}, 2)),
            DropReason::kNotGranted);
  EXPECT_EQ(RefusesRow(machine_, Role::kLarge, 20, S::Finished(S::Row(1, 1, 3, {}), 3)),
            std::nullopt);
}

}  // namespace
}  // namespace tokenrouter
