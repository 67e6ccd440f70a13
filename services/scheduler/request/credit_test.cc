#include "services/scheduler/request/credit.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

TEST(Credit, IsRaisedInHalfWindows) {
  EXPECT_FALSE(RaisesCredit(/*told=*/64, /*acked=*/31, /*window=*/64));
  EXPECT_TRUE(RaisesCredit(64, 32, 64));
  EXPECT_TRUE(RaisesCredit(10, 10, 1));
}

TEST(Credit, IsRaisedBeforeAWriterWhoseClientKeepsUpIsBlocked) {
  for (Position window = 1; window <= 80; ++window) {
    // The writer is blocked at its credit, and the client has acknowledged everything.
    EXPECT_TRUE(RaisesCredit(/*told=*/100, /*acked=*/100, window)) << window;
  }
}

TEST(Credit, GoesWithTheGrantOnlyWhenLittleIsLeft) {
  EXPECT_FALSE(RaisesCreditWithGrant(/*told=*/64, /*committed=*/10, /*acked=*/10, 64));
  EXPECT_TRUE(RaisesCreditWithGrant(64, 40, 40, 64));
  EXPECT_FALSE(RaisesCreditWithGrant(64, 40, 0, 64)) << "the client has acknowledged nothing";
}

TEST(Credit, HoldsHandoffsOfRequestsWithStopStringsOnly) {
  EXPECT_TRUE(HoldsHandoff(true, /*committed=*/109, /*acked=*/100, /*window=*/16));
  EXPECT_FALSE(HoldsHandoff(true, 108, 100, 16));
  EXPECT_FALSE(HoldsHandoff(false, 200, 100, 16));
}

}  // namespace
}  // namespace tokenrouter
