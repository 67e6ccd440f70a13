// Calls of the front ends that the thread of the scheduler link has not processed yet: per request
// the furthest acknowledgement, and its end. Unlike posts to a mailbox these cannot be lost, since
// there is at most one entry per request. Ownership: plain values. Threads: thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "libs/concurrency/mutex.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

class PendingCalls {
 public:
  struct Call {
    int32_t acknowledged = 0;  // 0: nothing new.
    bool cancelled = false;
    std::optional<wire::Finish> finish;
  };

  // The request's Submit is pending: calls about it wait until Entered.
  void Entering(uint64_t handle);
  void Entered(uint64_t handle);

  // These return whether the link's thread must be woken because nothing was waiting for it before.
  bool Acknowledge(uint64_t handle, int32_t position);
  bool Cancel(uint64_t handle);
  bool Finish(uint64_t handle, wire::Finish finish);

  // Takes all calls by handle, except those about requests whose Submit is pending.
  std::map<uint64_t, Call> Take();

 private:
  Mutex mutex_;
  std::set<uint64_t> entering_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokenrouter
