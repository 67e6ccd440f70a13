// Requests that outlive a restart of the scheduler: what one core told the gateway is submitted to
// another, which must go on as the first would have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using S = ScriptedScheduler;

// What a gateway submits again after these chunks of its request.
wire::Submit ResubmitAfter(wire::Submit submit, const wire::SchedulerFrame& heard) {
  submit.set_resumed(true);
  for (const wire::TokenChunk& chunk : heard.chunks()) {
    submit.mutable_ids()->MergeFrom(chunk.ids());
    submit.mutable_authors()->append(chunk.authors());
    submit.set_state(chunk.state());
    if (chunk.has_grant()) *submit.mutable_grant() = chunk.grant();
  }
  return submit;
}

wire::RowReport HandingOff(Position base, const std::vector<TokenId>& ids,
                           const wire::Window& window) {
  wire::RowReport row = S::HandingOff(S::Row(1, 1, base, ids), Role::kLarge);
  *row.mutable_handoff()->mutable_window() = window;
  return row;
}

wire::Window Tokens(int32_t tokens) {
  wire::Window window;
  window.set_kind(wire::Window::KIND_TOKENS);
  window.set_tokens(tokens);
  return window;
}

wire::Submit Random(uint64_t handle) {
  wire::Submit submit = S::MakeSubmit(handle, "random");
  (*submit.mutable_spec()->mutable_routing()->mutable_parameters())["p"] = 0.5;
  return submit;
}

TEST(Resume, SendsTheGrantOnlyWhenItHasChanged) {
  S before;
  before.AttachAll();
  before.Submit(Random(7));
  before.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  before.Send(S::kSmall, S::Row(1, 1, 4, {41}));
  before.Send(S::kSmall, HandingOff(5, {42}, Tokens(4)));
  before.Send(S::kLarge, S::Row(1, 1, 6, {50}, 2));
  const wire::SchedulerFrame heard = before.Heard();
  ASSERT_EQ(heard.chunks_size(), 4);
  EXPECT_TRUE(heard.chunks(0).has_grant()) << "the first chunk after a submit";
  EXPECT_FALSE(heard.chunks(1).has_grant()) << "absent: as before";
  EXPECT_EQ(heard.chunks(2).grant().window().tokens(), 4);
  EXPECT_EQ(heard.chunks(3).grant().window().tokens(), 3);
}

TEST(Resume, SendsTheGrantAgainAfterAResubmit) {
  S before;
  before.AttachAll();
  before.Submit(Random(7));
  before.Send(S::kSmall, S::Row(1, 1, 3, {40}));
  before.Send(S::kSmall, S::Row(1, 1, 4, {41}));
  S after;
  after.AttachAll();
  after.Submit(ResubmitAfter(Random(7), before.Heard()));
  after.Send(S::kSmall, S::Row(1, 1, 5, {42}));
  const wire::SchedulerFrame heard = after.Heard();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_TRUE(heard.chunks(0).has_grant());
}

TEST(Resume, GoesOnInAWindowOfTokens) {
  S before;
  before.AttachAll();
  before.Submit(Random(7));
  before.Send(S::kSmall, HandingOff(3, {40}, Tokens(4)));
  before.Send(S::kLarge, S::Row(1, 1, 4, {50}, 2));
  S after;
  after.AttachAll();
  after.Submit(ResubmitAfter(Random(7), before.Heard()));
  const wire::CommandFrame told = after.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40, 50));
  EXPECT_EQ(told.opens(0).grant().window().kind(), wire::Window::KIND_TOKENS);
  EXPECT_EQ(told.opens(0).grant().window().tokens(), 3);
  EXPECT_EQ(after.Told(S::kSmall).opens_size(), 0);
}

TEST(Resume, BeginsAWindowThatWasGivenWithTheLastToken) {
  S before;
  before.AttachAll();
  before.Submit(Random(7));
  before.Send(S::kSmall, HandingOff(3, {40}, Tokens(4)));
  S after;
  after.AttachAll();
  after.Submit(ResubmitAfter(Random(7), before.Heard()));
  EXPECT_EQ(after.Told(S::kLarge).opens(0).grant().window().tokens(), 4);
}

TEST(Resume, GoesOnInADelimiterWindow) {
  wire::Window window;
  window.set_kind(wire::Window::KIND_DELIMITER);
  window.add_delimiters(13);
  S before;
  before.AttachAll();
  before.Submit(Random(7));
  before.Send(S::kSmall, HandingOff(3, {40}, window));
  before.Send(S::kLarge, S::Row(1, 1, 4, {50, 51}, 2));
  S after;
  after.AttachAll();
  after.Submit(ResubmitAfter(Random(7), before.Heard()));
  const wire::CommandFrame told = after.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).grant().window().kind(), wire::Window::KIND_DELIMITER);
  EXPECT_THAT(told.opens(0).grant().window().delimiters(), ElementsAre(13));
}

TEST(Resume, ComesBackToTheSmallSideAfterTheWindow) {
  S before;
  before.AttachAll();
  before.Submit(Random(7));
  before.Send(S::kSmall, HandingOff(3, {40}, Tokens(1)));
  before.Send(S::kLarge, S::HandingOff(S::Row(1, 1, 4, {50}, 2), Role::kSmall));
  S after;
  after.AttachAll();
  after.Submit(ResubmitAfter(Random(7), before.Heard()));
  EXPECT_EQ(after.Told(S::kSmall).opens(0).grant().window().kind(), wire::Window::KIND_OWN_RULE);
  EXPECT_EQ(after.Told(S::kLarge).opens_size(), 0);
}

TEST(Resume, HasTentativeTokensWrittenAgainByTheirAuthor) {
  const wire::Submit submit = S::MakeSubmit(7, "speculative");
  S before;
  before.AttachAll();
  before.Submit(submit);
  before.Send(S::kSmall, S::HandingOff(S::Row(1, 1, 3, {40}), Role::kLarge, {60, 61}));
  S after;
  after.AttachAll();
  after.Submit(ResubmitAfter(submit, before.Heard()));
  const wire::CommandFrame told = after.Told(S::kSmall);
  ASSERT_EQ(told.opens_size(), 1) << "the draft is lost: nobody can verify it";
  EXPECT_THAT(told.opens(0).ids(), ElementsAre(1, 2, 3, 40));
  EXPECT_EQ(told.opens(0).tail(), 0);
  EXPECT_EQ(told.opens(0).grant().verify(), 0);
  EXPECT_EQ(after.Told(S::kLarge).opens_size(), 0);
}

TEST(Resume, KeepsALargeAloneWindowAndWhatTheAlgorithmHadSaid) {
  CoreOptions options;
  options.forced_mode = ServiceMode::kLargeAlone;
  S before(options);
  before.AttachAll();
  before.Submit(Random(7));
  before.Send(S::kLarge, S::Row(1, 1, 3, {50}, 2));
  S after;
  after.core.ForceMode(ServiceMode::kRouted);
  after.AttachAll();
  after.Submit(ResubmitAfter(Random(7), before.Heard()));
  const wire::CommandFrame told = after.Told(S::kLarge);
  ASSERT_EQ(told.opens_size(), 1);
  EXPECT_EQ(told.opens(0).grant().window().tokens(), options.large_alone_window - 1);
  const RequestMachine& request = *after.core.requests().Find(1);
  EXPECT_TRUE(request.grant().large_alone);
  ASSERT_TRUE(request.grant().own.has_value());
  EXPECT_EQ(request.grant().own->role, Role::kSmall);
}

TEST(Resume, WithoutAGrantBeginsAsItsAlgorithmOpens) {
  S s;
  s.AttachAll();
  wire::Submit submit = Random(7);
  submit.set_resumed(true);
  s.Submit(submit);
  EXPECT_EQ(s.Told(S::kSmall).opens(0).grant().window().kind(), wire::Window::KIND_OWN_RULE);
}

TEST(Resume, WithAGrantThatMakesNoSenseIsRefused) {
  S s;
  s.AttachAll();
  wire::Submit submit = Random(7);
  submit.set_resumed(true);
  submit.add_ids(40);
  submit.set_authors("\1");
  submit.mutable_grant()->set_role(api::ROLE_LARGE);
  *submit.mutable_grant()->mutable_window() = Tokens(0);
  s.Submit(submit);
  const wire::SchedulerFrame heard = s.Heard();
  ASSERT_EQ(heard.rejections_size(), 1);
  EXPECT_EQ(heard.rejections(0).code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(heard.rejections(0).message(), ::testing::HasSubstr("window.tokens is 0"));
  submit.mutable_grant()->mutable_window()->set_tokens(1);
  submit.set_resumed(false);
  s.Submit(submit);
  EXPECT_THAT(s.Heard().rejections(0).message(), ::testing::HasSubstr("resumed"));
}

}  // namespace
}  // namespace tokenrouter
