#include "libs/worker/step/device_lease.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

wire::Lease Lease(int32_t max_ms, int32_t yield_at = 0, uint64_t lease_id = 3) {
  wire::Lease lease;
  lease.set_lease_id(lease_id);
  lease.set_max_ms(max_ms);
  lease.set_yield_at_handoffs(yield_at);
  return lease;
}

TEST(DeviceLeaseTest, ADeviceOfItsOwnNeedsNone) {
  const DeviceLease lease(false);
  EXPECT_TRUE(lease.MayCompute(absl::UnixEpoch()));
  EXPECT_FALSE(lease.IsOver(0, absl::UnixEpoch()));
}

TEST(DeviceLeaseTest, ASharedDeviceNeedsOneInTime) {
  DeviceLease lease(true);
  const absl::Time now = absl::UnixEpoch();
  EXPECT_FALSE(lease.MayCompute(now));
  lease.Grant(Lease(10), now);
  EXPECT_TRUE(lease.MayCompute(now + absl::Milliseconds(9)));
  EXPECT_FALSE(lease.MayCompute(now + absl::Milliseconds(10)));
  EXPECT_TRUE(lease.IsOver(5, now + absl::Milliseconds(10)));
}

TEST(DeviceLeaseTest, EndsWhenNothingIsReadyOrEnoughRowsLeft) {
  DeviceLease lease(true);
  const absl::Time now = absl::UnixEpoch();
  lease.Grant(Lease(0, /*yield_at=*/2), now);
  EXPECT_TRUE(lease.IsOver(0, now));
  EXPECT_FALSE(lease.IsOver(1, now));
  lease.CountHandoffs(1);
  EXPECT_FALSE(lease.IsOver(1, now));
  lease.CountHandoffs(1);
  EXPECT_TRUE(lease.IsOver(1, now));
  lease.Grant(Lease(0, 2, 4), now);  // Handoffs count from the grant.
  EXPECT_FALSE(lease.IsOver(1, now));
}

TEST(DeviceLeaseTest, TheLeaseInForceIsOnlyEverShortened) {
  DeviceLease lease(true);
  const absl::Time now = absl::UnixEpoch();
  lease.Grant(Lease(100, /*yield_at=*/2), now);
  lease.CountHandoffs(1);
  lease.Grant(Lease(10), now);
  EXPECT_EQ(lease.expires(), now + absl::Milliseconds(10));
  lease.Grant(Lease(50), now);
  EXPECT_EQ(lease.expires(), now + absl::Milliseconds(10));
  lease.CountHandoffs(1);
  EXPECT_TRUE(lease.IsOver(1, now)) << "handoffs continue to count";
  lease.Drop();
  lease.Grant(Lease(5), now);
  EXPECT_FALSE(lease.held()) << "it was returned while the message was in flight";
  lease.Reset();
  lease.Grant(Lease(5), now);
  EXPECT_TRUE(lease.held()) << "another scheduler's lease with the same id";
}

}  // namespace
}  // namespace tokenrouter
