#include "services/gateway/link/pending_calls.h"

#include <algorithm>
#include <utility>

namespace tokenrouter {

void PendingCalls::Entering(uint64_t handle) {
  MutexLock lock(&mutex_);
  entering_.insert(handle);
}

void PendingCalls::Entered(uint64_t handle) {
  MutexLock lock(&mutex_);
  entering_.erase(handle);
}

bool PendingCalls::Acknowledge(uint64_t handle, int32_t position) {
  MutexLock lock(&mutex_);
  const bool first = calls_.empty();
  Call& call = calls_[handle];
  call.acknowledged = std::max(call.acknowledged, position);
  return first;
}

bool PendingCalls::Cancel(uint64_t handle) {
  MutexLock lock(&mutex_);
  const bool first = calls_.empty();
  calls_[handle].cancelled = true;
  return first;
}

bool PendingCalls::Finish(uint64_t handle, wire::Finish finish) {
  MutexLock lock(&mutex_);
  const bool first = calls_.empty();
  calls_[handle].finish = std::move(finish);
  return first;
}

std::map<uint64_t, PendingCalls::Call> PendingCalls::Take() {
  MutexLock lock(&mutex_);
  std::map<uint64_t, Call> taken = std::exchange(calls_, {});
  for (const uint64_t handle : entering_) {
    // Its Submit is in the mailbox, so the link's thread will collect the pending calls again.
    if (auto node = taken.extract(handle)) calls_.insert(std::move(node));
  }
  return taken;
}

}  // namespace tokenrouter
