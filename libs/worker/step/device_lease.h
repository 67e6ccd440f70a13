// DeviceLease is a worker's side of the leases on a shared device: what it was granted and when the
// lease is over. A worker without a device key never needs one.
// Threads: not thread-safe; lives with the WorkerCore. Times are the worker's own clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

class DeviceLease {
 public:
  explicit DeviceLease(bool needed) : needed_(needed) {}

  // Granting the lease in force again can only shorten it; one that is over stays over.
  void Grant(const wire::Lease& lease, absl::Time now) {
    const absl::Time expires =
        lease.max_ms() > 0 ? now + absl::Milliseconds(lease.max_ms()) : absl::InfiniteFuture();
    if (lease.lease_id() == lease_id_) {
      if (held_) expires_ = std::min(expires_, expires);
      return;
    }
    lease_id_ = lease.lease_id();
    expires_ = expires;
    length_ = expires - now;
    yield_at_handoffs_ = lease.yield_at_handoffs();
    handoffs_ = 0;
    held_ = true;
  }
  void Drop() { held_ = false; }
  // Another scheduler numbers its leases anew.
  void Reset() {
    held_ = false;
    lease_id_ = 0;
  }
  void CountHandoffs(int32_t handoffs) { handoffs_ += handoffs; }

  // Whether a step may start.
  bool MayCompute(absl::Time now) const { return !needed_ || (held_ && now < expires_); }
  // Whether a held lease ends now: nothing is ready, enough rows were handed off, or its time is
  // up.
  bool IsOver(int32_t ready, absl::Time now) const {
    return held_ && (ready == 0 || now >= expires_ ||
                     (yield_at_handoffs_ > 0 && handoffs_ >= yield_at_handoffs_));
  }
  bool needed() const { return needed_; }
  bool held() const { return held_; }
  uint64_t lease_id() const { return lease_id_; }
  // The length of the lease as granted; no step that can be cut should take longer.
  absl::Duration length() const { return length_; }
  absl::Time expires() const { return held_ ? expires_ : absl::InfiniteFuture(); }

 private:
  const bool needed_;
  bool held_ = false;
  uint64_t lease_id_ = 0;  // Of the last lease; leases are numbered from 1.
  absl::Time expires_ = absl::InfiniteFuture();
  absl::Duration length_ = absl::InfiniteDuration();
  int32_t yield_at_handoffs_ = 0;  // 0: handoffs never end the lease.
  int32_t handoffs_ = 0;
};

}  // namespace tokenrouter
