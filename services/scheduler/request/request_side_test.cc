#include "services/scheduler/request/request_side.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

RequestSide Open() {
  RequestSide side;
  side.worker = 10;
  side.epoch = 2;
  side.known = 8;
  side.read = 6;
  return side;
}

TEST(RequestSideTest, ForgetsOnlyWhatAPresentReportLacks) {
  RequestSide side = Open();
  EXPECT_FALSE(side.Forget(1, 4)) << "of an earlier worker";
  EXPECT_FALSE(side.Forget(2, 8)) << "no change";
  EXPECT_FALSE(side.Forget(2, -1));
  EXPECT_TRUE(side.Forget(2, 4));
  EXPECT_EQ(side.known, 4);
  EXPECT_EQ(side.read, 4) << "what it does not know, it has not computed";
  side.Lose(ReopenCause::kEvicted);
  EXPECT_FALSE(side.Forget(2, 0)) << "it is not open";
}

TEST(RequestSideTest, LosesAllButItsEpochAndClass) {
  RequestSide side = Open();
  side.credit = 20;
  side.credit_blocked = true;
  side.numerics_class = 3;
  side.Lose(ReopenCause::kEvicted);
  EXPECT_EQ(side.worker, 0u);
  EXPECT_EQ(side.known, 0);
  EXPECT_EQ(side.credit, 0);
  EXPECT_FALSE(side.credit_blocked);
  EXPECT_EQ(side.epoch, 2u);
  EXPECT_EQ(side.numerics_class, 3);
  EXPECT_EQ(side.lost_by, ReopenCause::kEvicted);
}

TEST(RequestSideTest, CountsEachLostWorkerOnce) {
  RequestSide side = Open();
  side.Suspect("a");
  side.Suspect("a");
  EXPECT_EQ(side.losses(), 1);
  side.Suspect("b");
  EXPECT_EQ(side.losses(), 2);
  side.Absolve();
  EXPECT_EQ(side.losses(), 0);
  side.Suspect("a");
  EXPECT_EQ(side.losses(), 1) << "it counts from the beginning";
}

}  // namespace
}  // namespace tokenrouter
