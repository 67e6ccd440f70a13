#include "services/scheduler/workers/kv_ledger.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Seconds(100);

TEST(KvLedger, CountsBlocksOfHistoriesAsTheyGrowShrinkAndClose) {
  KvLedger ledger(100, 16);
  ledger.Open(1, 1, kNow);
  ledger.Open(2, 32, kNow);
  EXPECT_EQ(ledger.blocks_in_use(), 3);
  ledger.Resize(1, 17);
  ledger.Resize(2, 16);
  EXPECT_EQ(ledger.blocks_in_use(), 3);
  ledger.Open(1, 48, kNow);
  EXPECT_EQ(ledger.blocks_in_use(), 4) << "reopened under its reservation";
  ledger.Close(2);
  ledger.Close(2);
  EXPECT_EQ(ledger.blocks_in_use(), 3);
  EXPECT_EQ(ledger.size(), 1);
}

TEST(KvLedger, KeepsAReserveForGrowthThatIsWaivedWhenEmpty) {
  KvLedger ledger(16, 16);
  EXPECT_EQ(ledger.LackingFor(10000), 0);
  ledger.Open(1, 160, kNow);
  EXPECT_EQ(ledger.LackingFor(64), 0) << "ten in use, four wanted, two in reserve";
  EXPECT_EQ(ledger.LackingFor(65), 1);
  ledger.Resize(1, 300);
  EXPECT_EQ(ledger.Overdrawn(), 3);
}

TEST(KvLedger, IsNeverShortWithoutLimits) {
  KvLedger ledger;
  ledger.Open(1, 1000000, kNow);
  EXPECT_EQ(ledger.LackingFor(1000000), 0);
  EXPECT_EQ(ledger.Overdrawn(), 0);
}

TEST(KvLedger, MeasuresHowLongTheGrantWasAway) {
  KvLedger ledger(16, 16);
  ledger.Open(1, 16, kNow);
  EXPECT_FALSE(ledger.reservations().at(1).used);
  EXPECT_EQ(ledger.BeginVisit(1, kNow + absl::Seconds(1)), absl::ZeroDuration())
      << "the first visit";
  ledger.EndVisit(1, kNow + absl::Seconds(2));
  EXPECT_EQ(ledger.BeginVisit(1, kNow + absl::Seconds(5)), absl::Seconds(3));
  EXPECT_EQ(ledger.BeginVisit(1, kNow + absl::Seconds(6)), absl::ZeroDuration()) << "still here";
  EXPECT_EQ(ledger.reservations().at(1).returns, 1);
  EXPECT_EQ(ledger.reservations().at(1).away, absl::Seconds(3));
  EXPECT_EQ(ledger.BeginVisit(2, kNow), absl::ZeroDuration()) << "no reservation";
}

}  // namespace
}  // namespace tokenrouter
