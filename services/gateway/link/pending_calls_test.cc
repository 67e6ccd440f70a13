#include "services/gateway/link/pending_calls.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

TEST(PendingCallsTest, MergesWhatIsSaidAboutOneRequestAndWakesOnce) {
  PendingCalls calls;
  EXPECT_TRUE(calls.Acknowledge(1, 20));
  EXPECT_FALSE(calls.Acknowledge(1, 10));
  EXPECT_FALSE(calls.Cancel(1));
  const auto taken = calls.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken.at(1).acknowledged, 20);
  EXPECT_TRUE(taken.at(1).cancelled);
  EXPECT_TRUE(calls.Take().empty());
  EXPECT_TRUE(calls.Finish(2, wire::Finish())) << "nothing waits any more";
}

TEST(PendingCallsTest, ACancelDoesNotOvertakeItsSubmit) {
  PendingCalls calls;
  calls.Entering(1);
  calls.Cancel(1);
  calls.Cancel(2);
  EXPECT_EQ(calls.Take().count(1), 0u);
  calls.Entered(1);
  EXPECT_EQ(calls.Take().count(1), 1u);
}

}  // namespace
}  // namespace tokenrouter
