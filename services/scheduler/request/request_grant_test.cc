#include "services/scheduler/request/request_grant.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

wire::DecodeGrant Window(int32_t tokens) {
  wire::DecodeGrant terms;
  terms.mutable_window()->set_kind(wire::Window::KIND_TOKENS);
  terms.mutable_window()->set_tokens(tokens);
  return terms;
}

TEST(RequestGrantTest, CountsDownItsWindowAndForgetsItsVerification) {
  RequestGrant grant;
  grant.terms = Window(5);
  grant.terms.set_verify(2);
  EXPECT_TRUE(CountDown(2, &grant));
  EXPECT_EQ(grant.terms.window().tokens(), 3);
  EXPECT_EQ(grant.terms.verify(), 0);
  CountDown(3, &grant);
  EXPECT_EQ(grant.terms.window().tokens(), 1) << "a window of no tokens cannot be sent";
}

TEST(RequestGrantTest, ChangesNoWindowThatDoesNotCount) {
  RequestGrant grant;
  grant.terms.mutable_window()->set_kind(wire::Window::KIND_OWN_RULE);
  EXPECT_FALSE(CountDown(2, &grant));
  grant.large_alone = true;
  grant.own = AlgorithmGrant{Role::kLarge, Window(4)};
  EXPECT_TRUE(CountDown(1, &grant)) << "the algorithm's own window does";
}

TEST(RequestGrantTest, EndsTheAlgorithmsLargeWindowUnderneath) {
  RequestGrant grant;
  grant.role = Role::kLarge;
  grant.large_alone = true;
  grant.own = AlgorithmGrant{Role::kLarge, Window(4)};
  CountDown(3, &grant);
  EXPECT_EQ(grant.own->role, Role::kLarge);
  EXPECT_EQ(grant.own->terms.window().tokens(), 1);
  CountDown(1, &grant);
  EXPECT_EQ(grant.own->role, Role::kSmall);
  EXPECT_EQ(grant.own->terms.window().kind(), wire::Window::KIND_OWN_RULE);
}

TEST(RequestGrantTest, LeavesASmallGrantThatHasNotBegun) {
  RequestGrant grant;
  grant.role = Role::kLarge;
  grant.large_alone = true;
  grant.own = AlgorithmGrant{Role::kSmall, Window(4)};
  CountDown(9, &grant);
  EXPECT_EQ(grant.own->terms.window().tokens(), 4);
  const RequestGrant own = OwnGrant(grant);
  EXPECT_EQ(own.role, Role::kSmall);
  EXPECT_EQ(own.terms.window().tokens(), 4);
  EXPECT_FALSE(own.large_alone);
  EXPECT_FALSE(own.own.has_value());
}

}  // namespace
}  // namespace tokenrouter
