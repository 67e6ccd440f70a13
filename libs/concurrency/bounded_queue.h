// BoundedQueue is the mailbox between threads: many producers, one consumer, a named limit, refuse
// when full. Ownership: owns what it holds. Threads: all methods are thread-safe; PopAll is meant
// for one consumer. Errors: a full or closed queue refuses by returning false; the caller decides
// what that means.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "libs/concurrency/mutex.h"

namespace tokenrouter {

template <typename T>
class BoundedQueue {
 public:
  // REQUIRES: limit >= 1 (items).
  explicit BoundedQueue(size_t limit) : limit_(limit) {}

  // False, and `item` is dropped, when the queue is full or closed.
  [[nodiscard]] bool TryPush(T item) {
    MutexLock lock(&mutex_);
    if (closed_ || items_.size() >= limit_) return false;
    items_.push_back(std::move(item));
    if (items_.size() == 1) ready_.Signal();
    return true;
  }

  // Takes everything, in order. Waits up to `timeout` for the first item; empty on timeout or
  // close.
  std::vector<T> PopAll(absl::Duration timeout) {
    MutexLock lock(&mutex_);
    if (items_.empty() && !closed_ && timeout > absl::ZeroDuration()) WaitLocked(timeout);
    return std::exchange(items_, {});
  }

  // Refuses every later push and wakes the consumer; what is queued can still be popped.
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    ready_.SignalAll();
  }

  bool closed() const {
    MutexLock lock(&mutex_);
    return closed_;
  }
  size_t size() const {
    MutexLock lock(&mutex_);
    return items_.size();
  }

 private:
  void WaitLocked(absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (timeout == absl::InfiniteDuration()) {
      while (items_.empty() && !closed_) ready_.Wait(&mutex_);
    } else {
      ready_.WaitFor(
          &mutex_, timeout);  // A spurious wake returns early and empty, which is a legal timeout.
    }
  }

  const size_t limit_;
  mutable Mutex mutex_;
  CondVar ready_;
  std::vector<T> items_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tokenrouter
