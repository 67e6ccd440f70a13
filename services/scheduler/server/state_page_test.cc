#include "services/scheduler/server/state_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

TEST(StatePageTest, IsTheStateAsJsonWithTheNamesOfTheProto) {
  OwnerLoop loop({.name = "test"});
  loop.Start();
  TR_ASSERT_OK_AND_ASSIGN(const std::string page, StatePage(&loop, [](wire::GetStateReply* reply) {
                            reply->add_models()->set_service_mode("routed");
                          }));
  EXPECT_THAT(page, HasSubstr("\"service_mode\": \"routed\""));
  EXPECT_THAT(page, HasSubstr("\"handoff_latency_ms\": 0"))
      << "numbers are shown even when they are 0";
}

TEST(StatePageTest, ReportsThatTheLoopIsGone) {
  OwnerLoop loop({.name = "test"});
  loop.Start();
  loop.Stop();
  EXPECT_EQ(StatePage(&loop, [](wire::GetStateReply*) {}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tokenrouter
