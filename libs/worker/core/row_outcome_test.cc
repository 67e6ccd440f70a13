#include "libs/worker/core/row_outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/routing/wire_types.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TokenId kEos = 9;

class RowOutcomeTest : public ::testing::Test {
 protected:
  // Prompt 1 2, then `tail` tentative ids, at the given side.
  void Open(Role role, const char* algorithm, const wire::DecodeGrant& grant,
            std::vector<TokenId> tail = {}, int32_t max_new = 10, double window = 3) {
    limits_ = {.role = role, .context_limit = 100, .usable_ids = 50, .stop_ids = {kEos}};
    wire::Open open;
    open.set_request(7);
    open.set_epoch(2);
    wire::GenerationSpec& spec = *open.mutable_spec();
    spec.set_prompt_length(2);
    spec.mutable_routing()->set_algorithm(algorithm);
    if (std::string(algorithm) == "speculative") {
      (*spec.mutable_routing()->mutable_parameters())["window"] = window;
    }
    spec.mutable_stop()->set_max_new_tokens(max_new);
    open.add_ids(1);
    open.add_ids(2);
    for (const TokenId id : tail) open.add_ids(id);
    open.set_tail(static_cast<int32_t>(tail.size()));
    *open.mutable_grant() = grant;
    Position unchanged = 0;
    const absl::Status status = ApplyOpen(open, limits_, &sequence_, &unchanged);
    ASSERT_TRUE(status.ok()) << status;
  }

  static wire::DecodeGrant Grant(const Window& window, int32_t verify = 0) {
    wire::DecodeGrant grant;
    *grant.mutable_window() = ToWire(window);
    grant.set_verify(verify);
    return grant;
  }

  RowOutcome Resolve(std::vector<TokenId> ids, float entropy = 0.25f) {
    std::vector<Choice> choices;
    for (const TokenId id : ids) {
      choices.push_back({.id = id, .logprob = -1, .signals = {.entropy = entropy}});
    }
    return ResolveRow(choices, limits_, &sequence_);
  }

  SequenceLimits limits_;
  SequenceState sequence_;
};

TEST_F(RowOutcomeTest, AStayCommitsOneTokenWithItsRecord) {
  Open(Role::kSmall, "never", Grant(Window::OwnRule()));
  const RowOutcome outcome = Resolve({5});
  EXPECT_EQ(outcome.report.request(), 7u);
  EXPECT_EQ(outcome.report.epoch(), 2u);
  EXPECT_EQ(outcome.report.base_position(), 2);
  EXPECT_THAT(outcome.report.ids(), ElementsAre(5));
  EXPECT_EQ(outcome.report.authors(), "\x01");
  EXPECT_THAT(outcome.report.entropies(), ElementsAre(0.25f));
  EXPECT_THAT(outcome.report.logprobs(), ElementsAre(-1));
  EXPECT_FALSE(outcome.report.has_handoff());
  EXPECT_TRUE(sequence_.grant.has_value());
}

TEST_F(RowOutcomeTest, AGoDropsTheProposalEvenAStopId) {
  Open(Role::kSmall, "entropy", Grant(Window::OwnRule()));
  const RowOutcome outcome = Resolve({kEos}, 3);
  EXPECT_THAT(outcome.report.ids(), IsEmpty());
  EXPECT_FALSE(outcome.report.has_finish());
  EXPECT_EQ(outcome.report.handoff().to(), api::ROLE_LARGE);
  EXPECT_EQ(outcome.report.handoff().window().tokens(), 1);
  EXPECT_EQ(outcome.report.handoff().verify(), 0);
  EXPECT_EQ(sequence_.track.size(), 2);
  EXPECT_FALSE(sequence_.grant.has_value());
}

TEST_F(RowOutcomeTest, AWindowOfTokensCommitsSoManyThenHandsBack) {
  Open(Role::kLarge, "entropy", Grant(Window::Tokens(2)));
  EXPECT_FALSE(Resolve({5}, 3).handed_off);
  const RowOutcome outcome = Resolve({6}, 3);
  EXPECT_THAT(outcome.report.ids(), ElementsAre(6));
  EXPECT_EQ(outcome.report.authors(), "\x02");
  EXPECT_EQ(outcome.report.handoff().to(), api::ROLE_SMALL);
  EXPECT_EQ(outcome.report.handoff().window().kind(), wire::Window::KIND_OWN_RULE);
}

TEST_F(RowOutcomeTest, ADelimiterEndsItsWindow) {
  Open(Role::kLarge, "entropy", Grant({Window::Kind::kDelimiter, 0, {30}}));
  EXPECT_FALSE(Resolve({5}).handed_off);
  EXPECT_TRUE(Resolve({30}).handed_off);
}

TEST_F(RowOutcomeTest, UntilEndNeverAsksTheRule) {
  Open(Role::kSmall, "entropy", Grant(Window::UntilEnd()));
  EXPECT_FALSE(Resolve({5}, 50).handed_off);
}

TEST_F(RowOutcomeTest, AFinishBeatsTheHandoff) {
  Open(Role::kLarge, "entropy", Grant(Window::Tokens(1)));
  const RowOutcome outcome = Resolve({kEos});
  EXPECT_TRUE(outcome.finished);
  EXPECT_EQ(outcome.report.finish().position(), 3);
  EXPECT_EQ(outcome.report.finish().reason(), api::FINISH_REASON_STOP);
  EXPECT_FALSE(outcome.report.has_handoff());
}

TEST_F(RowOutcomeTest, TheLastTokenAllowedFinishesByLength) {
  Open(Role::kSmall, "never", Grant(Window::OwnRule()), {}, /*max_new=*/1);
  EXPECT_EQ(Resolve({5}).report.finish().reason(), api::FINISH_REASON_LENGTH);
}

TEST_F(RowOutcomeTest, DraftsStaySilentUntilTheyLeaveTogether) {
  Open(Role::kSmall, "speculative", Grant(Window::OwnRule()));
  EXPECT_FALSE(Resolve({5}).handed_off);
  EXPECT_EQ(Resolve({6}).committed, 0);
  const RowOutcome outcome = Resolve({7});
  EXPECT_THAT(outcome.report.ids(), IsEmpty());
  EXPECT_THAT(outcome.report.tail(), ElementsAre(5, 6, 7));
  EXPECT_EQ(outcome.report.handoff().verify(), 3);
  EXPECT_EQ(sequence_.track.size(), 5);
}

TEST_F(RowOutcomeTest, ADraftThatReachesAnEndLeavesEarly) {
  Open(Role::kSmall, "speculative", Grant(Window::OwnRule()), {}, /*max_new=*/2);
  EXPECT_FALSE(Resolve({5}).handed_off);
  EXPECT_THAT(Resolve({6}).report.tail(), ElementsAre(5, 6));
  Open(Role::kSmall, "speculative", Grant(Window::OwnRule()));
  const RowOutcome outcome = Resolve({kEos});
  EXPECT_TRUE(outcome.handed_off);
  EXPECT_FALSE(outcome.finished);
}

class GoesToItself : public Algorithm {
 public:
  std::string_view name() const override { return "goes_to_itself"; }
  SignalRequest Signals(Role) const override { return {}; }
  Decision Route(const RouteStep& step, RequestState*) const override {
    return Decision::Go(step.role, Window::OwnRule());
  }
};

// It would propose, drop and propose the same id again for ever.
TEST_F(RowOutcomeTest, AnAlgorithmThatGoesToItsOwnSideIsBroken) {
  Open(Role::kSmall, "never", Grant(Window::OwnRule()));
  sequence_.algorithm = std::make_unique<GoesToItself>();
  EXPECT_DEATH(Resolve({5}), "goes_to_itself hands off to the small side, which has the grant");
}

TEST_F(RowOutcomeTest, VerificationKeepsTheEqualPrefixAndWritesOneMore) {
  Open(Role::kLarge, "speculative", Grant(Window::OwnRule(), 3), {5, 6, 7});
  const RowOutcome outcome = Resolve({5, 8, 7, 40}, 0.5f);
  EXPECT_THAT(outcome.report.ids(), ElementsAre(5, 8));
  EXPECT_EQ(outcome.report.authors(), "\x01\x02");
  EXPECT_THAT(outcome.report.entropies(), ElementsAre(0.5f, 0.5f));
  EXPECT_EQ(outcome.valid_kv, 3);
  EXPECT_THAT(outcome.report.tail(), IsEmpty());
  EXPECT_EQ(outcome.report.handoff().to(), api::ROLE_SMALL);
  EXPECT_EQ(outcome.report.handoff().verify(), 0);
}

TEST_F(RowOutcomeTest, AStopIdInAKeptTailFinishesBeforeTheProposal) {
  Open(Role::kLarge, "speculative", Grant(Window::OwnRule(), 3), {5, kEos, 7});
  const RowOutcome outcome = Resolve({5, kEos, 7, 40});
  EXPECT_THAT(outcome.report.ids(), ElementsAre(5, kEos));
  EXPECT_EQ(outcome.report.finish().position(), 4);
  EXPECT_FALSE(outcome.handed_off);
  EXPECT_EQ(sequence_.track.size(), 4);
  EXPECT_EQ(outcome.valid_kv, 4);
}

}  // namespace
}  // namespace tokenrouter
