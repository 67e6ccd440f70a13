#include "services/gateway/link/link_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/tokens/protocol_version.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

constexpr absl::Time kStart = absl::UnixEpoch();

wire::SchedulerFrame Welcome(uint64_t term) {
  wire::SchedulerFrame frame;
  frame.set_term(term);
  frame.mutable_welcome()->set_protocol_version(kProtocolVersion);
  frame.mutable_welcome()->mutable_pair()->set_small_workers(2);
  return frame;
}

class LinkConnectionTest : public ::testing::Test {
 protected:
  void Connect() {
    ASSERT_TRUE(connection_.TakeDial(kStart));
    connection_.OnConnected();
  }

  const LinkOptions options_{.scheduler = "s:1", .gateway_id = "g", .pair = "p"};
  LinkConnection connection_{&options_};
};

TEST_F(LinkConnectionTest, GreetsOnceAndIsUpWithTheWelcome) {
  EXPECT_THAT(connection_.WhyDown(), HasSubstr("s:1"));
  Connect();
  EXPECT_FALSE(connection_.TakeDial(kStart)) << "it has dialled";
  EXPECT_TRUE(connection_.TakeHello().has_value());
  EXPECT_FALSE(connection_.TakeHello().has_value());
  EXPECT_FALSE(connection_.up());
  EXPECT_TRUE(connection_.Hears(Welcome(3)));
  EXPECT_TRUE(connection_.up());
  EXPECT_EQ(connection_.term(), 3u);
  wire::SchedulerFrame stale;
  stale.set_term(2);
  EXPECT_FALSE(connection_.Hears(stale));
}

TEST_F(LinkConnectionTest, RefusesAnEarlierTermAndSaysWhy) {
  Connect();
  EXPECT_TRUE(connection_.Hears(Welcome(3)));
  EXPECT_TRUE(connection_.OnDisconnected(kStart, "reset"));
  EXPECT_FALSE(connection_.OnDisconnected(kStart, "again"));
  EXPECT_EQ(connection_.WhyDown(), "reset");
  EXPECT_EQ(connection_.pair_status().small_workers(), 0) << "nothing is known of the pair";
  ASSERT_LT(connection_.dial_at(), absl::InfiniteFuture());
  ASSERT_TRUE(connection_.TakeDial(connection_.dial_at()));
  connection_.OnConnected();
  EXPECT_FALSE(connection_.Hears(Welcome(2)));
  EXPECT_TRUE(connection_.TakeHangUp());
  EXPECT_FALSE(connection_.TakeHangUp());
  connection_.OnDisconnected(kStart, "hung up");
  EXPECT_THAT(connection_.WhyDown(), HasSubstr("refused the scheduler of term 2"));
}

}  // namespace
}  // namespace tokenrouter
