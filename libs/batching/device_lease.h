// DeviceLease is a worker's side of taking turns on a shared device: what it was granted and when
// the turn is over. A worker without a device key never needs one.
// Threads: not thread-safe; lives with the WorkerCore. Times are the worker's own clock.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "proto/worker.pb.h"

namespace tokenrouter {

class DeviceLease {
 public:
  explicit DeviceLease(bool needed) : needed_(needed) {}

  void Grant(const v1::Lease& lease, absl::Time now) {
    turn_ = lease.turn();
    expires_ =
        lease.max_ms() > 0 ? now + absl::Milliseconds(lease.max_ms()) : absl::InfiniteFuture();
    yield_at_departures_ = lease.yield_at_departures();
    departures_ = 0;
    held_ = true;
  }
  void Drop() { held_ = false; }
  void CountDepartures(int32_t departures) { departures_ += departures; }

  // Whether a step may start.
  bool MayCompute(absl::Time now) const { return !needed_ || (held_ && now < expires_); }
  // Whether a held turn ends now: nothing is ready, enough rows left, or its time is up.
  bool IsOver(int32_t ready, absl::Time now) const {
    return held_ && (ready == 0 || now >= expires_ ||
                     (yield_at_departures_ > 0 && departures_ >= yield_at_departures_));
  }
  bool needed() const { return needed_; }
  bool held() const { return held_; }
  uint64_t turn() const { return turn_; }
  absl::Time expires() const { return held_ ? expires_ : absl::InfiniteFuture(); }

 private:
  const bool needed_;
  bool held_ = false;
  uint64_t turn_ = 0;
  absl::Time expires_ = absl::InfiniteFuture();
  int32_t yield_at_departures_ = 0;  // 0: never for that.
  int32_t departures_ = 0;
};

}  // namespace tokenrouter
