// ReadWindow bounds what has been read of one stream and still waits for its owner. The next read
// begins only while less than the window waits; otherwise it begins when the owner has handled
// enough. Meanwhile gRPC reads no further, HTTP/2 flow control stops the peer, and nothing is lost.
// Ownership: shared by the reactor and the credits; it outlives the reactor, which closes it before
// it may go. Threads: thread-safe. `start_read` runs under the lock, so that none begins after
// Close has returned; it must not call back.
// Units: bytes on the wire; each message counts as at least kLeastReadBytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "libs/concurrency/mutex.h"

namespace tokenrouter {

// A round of the owner's loop handles megabytes, so a window of this size keeps it busy; larger
// ones only lengthen the queue. One message above the window is read all the same.
inline constexpr size_t kReadWindowBytes = 1 << 20;
// Small messages cost time, not bytes: at most 256 of one stream wait.
inline constexpr size_t kLeastReadBytes = 4096;

// Goes with a message; its end says that the message has been handled.
using ReadCredit = std::shared_ptr<const void>;

class ReadWindow : public std::enable_shared_from_this<ReadWindow> {
 public:
  ReadWindow(std::function<void()> start_read, size_t limit)
      : start_read_(std::move(start_read)), limit_(limit) {}

  // The credit of a message that was read.
  ReadCredit Hold(size_t bytes) {
    bytes = std::max(bytes, kLeastReadBytes);
    {
      MutexLock lock(&mutex_);
      waiting_bytes_ += bytes;
    }
    return ReadCredit(nullptr,
                      [window = shared_from_this(), bytes](const void*) { window->Return(bytes); });
  }

  // Begins the next read, now or as soon as there is room. REQUIRES: none is under way.
  void Next() {
    MutexLock lock(&mutex_);
    wanted_ = true;
    MaybeStart();
  }

  // No read begins from now on. Idempotent.
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  bool closed() const {
    MutexLock lock(&mutex_);
    return closed_;
  }

 private:
  void Return(size_t bytes) {
    MutexLock lock(&mutex_);
    waiting_bytes_ -= bytes;
    MaybeStart();
  }
  void MaybeStart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!wanted_ || closed_ || waiting_bytes_ >= limit_) return;
    wanted_ = false;
    start_read_();
  }

  const std::function<void()> start_read_;
  const size_t limit_;
  mutable Mutex mutex_;
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;  // A read that has not begun.
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tokenrouter
