#include "services/scheduler/request/grant_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

wire::GrantState LargeTokens(int32_t tokens) {
  wire::GrantState state;
  state.set_role(api::ROLE_LARGE);
  state.mutable_window()->set_kind(wire::Window::KIND_TOKENS);
  state.mutable_window()->set_tokens(tokens);
  return state;
}

void ExpectRefused(const wire::GrantState& state, const std::string& words) {
  EXPECT_THAT(ReadGrantState(state),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
}

TEST(GrantState, ReadsBackWhatItFills) {
  wire::GrantState state = LargeTokens(5);
  state.set_large_alone(true);
  state.set_own_role(api::ROLE_LARGE);
  state.mutable_own_window()->set_kind(wire::Window::KIND_DELIMITER);
  state.mutable_own_window()->add_delimiters(13);
  TR_ASSERT_OK_AND_ASSIGN(const RequestGrant grant, ReadGrantState(state));
  EXPECT_EQ(grant.role, Role::kLarge);
  EXPECT_EQ(grant.terms.window().tokens(), 5);
  EXPECT_TRUE(grant.large_alone);
  ASSERT_TRUE(grant.own.has_value());
  wire::GrantState again;
  FillGrantState(grant, &again);
  EXPECT_EQ(again.SerializeAsString(), state.SerializeAsString());
}

TEST(GrantState, LeavesAVerificationOut) {
  RequestGrant grant;
  grant.role = Role::kLarge;
  grant.terms.mutable_window()->set_kind(wire::Window::KIND_OWN_RULE);
  grant.terms.set_verify(3);
  wire::GrantState state;
  FillGrantState(grant, &state);
  TR_ASSERT_OK_AND_ASSIGN(grant, ReadGrantState(state));
  EXPECT_EQ(grant.terms.verify(), 0);
}

TEST(GrantState, RefusesWhatNobodyCanGoOnWith) {
  ExpectRefused(wire::GrantState(), "role");
  ExpectRefused(LargeTokens(0), "window.tokens is 0");
  wire::GrantState state = LargeTokens(1);
  state.mutable_window()->set_kind(wire::Window::KIND_DELIMITER);
  ExpectRefused(state, "window.delimiters is empty");
  state = LargeTokens(1);
  state.mutable_own_window()->set_kind(wire::Window::KIND_OWN_RULE);
  ExpectRefused(state, "own_window is set without large_alone");
  state.set_large_alone(true);
  ExpectRefused(state, "role");
  state.set_role(api::ROLE_SMALL);
  ExpectRefused(state, "large_alone with the small model");
}

}  // namespace
}  // namespace tokenrouter
