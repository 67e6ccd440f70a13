#include "services/scheduler/server/state_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>

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

TEST(StatePageTest, DoesNotWaitForALoopThatIsKnownToBeStuck) {
  std::atomic<int64_t> seconds = 0;
  OwnerLoop loop(
      {.name = "test", .now = [&] { return absl::UnixEpoch() + absl::Seconds(seconds.load()); }});
  loop.Start();
  std::promise<void> entered, release;
  ASSERT_TRUE(loop.Post([&] {
    entered.set_value();
    release.get_future().wait();
  }));
  entered.get_future().wait();
  seconds = 2;
  bool asked = false;
  EXPECT_THAT(
      std::string(
          StatePage(&loop, [&asked](wire::GetStateReply*) { asked = true; }).status().message()),
      HasSubstr("has not gone round for 2s"));
  release.set_value();
  loop.Stop();
  EXPECT_FALSE(asked);
}

}  // namespace
}  // namespace tokenrouter
