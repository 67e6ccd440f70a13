// StreamWriter is the half of a bidirectional stream that others may hold: it queues messages,
// keeps one write in flight and never blocks. Client and server streams attach the reactor's
// operations to it. Ownership: shared by the reactor and its users; it outlives the reactor and
// then refuses. Threads: all public methods are thread-safe. Errors: Write returns false, and drops
// the message, when the stream has ended, `limit` messages wait, or `limit_bytes` would wait in
// more than one: a peer that does not read is then the caller's to close.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "libs/concurrency/mutex.h"
#include "libs/rpc/message_bytes.h"

namespace tokenrouter {

inline constexpr size_t kDefaultPendingWrites = 1024;
// As much as one message may have (keepalive.h).
inline constexpr size_t kDefaultPendingBytes = 64 << 20;

template <typename Out>
class StreamWriter {
 public:
  // The reactor's operations. They run outside the lock, on the caller's thread; `finish` runs at
  // most once, with no write in flight.
  struct Operations {
    std::function<void(const Out*)> start_write;
    std::function<void(const absl::Status&)> finish;
    // Makes the write in flight fail; empty: it cannot. May run at any time, also after the end.
    std::function<void()> cancel = {};
  };

  StreamWriter(Operations operations, size_t limit = kDefaultPendingWrites,
               size_t limit_bytes = kDefaultPendingBytes)
      : operations_(std::move(operations)), limit_(limit), limit_bytes_(limit_bytes) {}

  [[nodiscard]] bool Write(Out message) {
    const Out* first = nullptr;
    const size_t bytes = MessageBytes(message);
    {
      MutexLock lock(&mutex_);
      if (ending_ || broken_ || queue_.size() >= limit_) return false;
      if (!queue_.empty() && bytes_ + bytes > limit_bytes_) return false;
      queue_.push_back({std::move(message), bytes});
      bytes_ += bytes;
      if (!writing_) {
        writing_ = true;
        first = &queue_.front().message;
      }
    }
    if (first != nullptr) operations_.start_write(first);
    return true;
  }

  // Ends the stream after what is queued has been written. Idempotent; the first status counts.
  void Finish(const absl::Status& status) {
    {
      MutexLock lock(&mutex_);
      if (ending_) return;
      ending_ = true;
      final_status_ = status;
    }
    MaybeFinish();
  }

  // For a peer that does not read: drops what waits and ends the stream. A write in flight is
  // cancelled, and the status with it. Without `cancel` the end waits for it, until the peer reads
  // again or is gone.
  void Abandon(const absl::Status& status) {
    Break();
    Finish(status);
    bool stuck = false;
    {
      MutexLock lock(&mutex_);
      stuck = writing_;
    }
    if (stuck && operations_.cancel) operations_.cancel();
  }

  size_t pending() const {
    MutexLock lock(&mutex_);
    return queue_.size();
  }

  // For the reactor: the write in flight ended. `ok` false: nothing more can be written.
  void OnWriteDone(bool ok) {
    const Out* next = nullptr;
    {
      MutexLock lock(&mutex_);
      PopFront();
      if (!ok) broken_ = true;
      while (!ok && !queue_.empty()) PopFront();
      writing_ = !queue_.empty();
      if (writing_) next = &queue_.front().message;
    }
    if (next != nullptr) {
      operations_.start_write(next);
    } else {
      MaybeFinish();
    }
  }

  // For the reactor: the peer has gone; drops what waits.
  void Break() {
    MutexLock lock(&mutex_);
    broken_ = true;
    while (queue_.size() > (writing_ ? 1u : 0u)) {
      bytes_ -= queue_.back().bytes;
      queue_.pop_back();
    }
  }

 private:
  struct Waiting {
    Out message;
    size_t bytes;
  };

  void PopFront() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bytes_ -= queue_.front().bytes;
    queue_.pop_front();
  }

  void MaybeFinish() {
    {
      MutexLock lock(&mutex_);
      if (!ending_ || writing_ || finished_) return;
      finished_ = true;
    }
    operations_.finish(final_status_);
  }

  const Operations operations_;
  const size_t limit_;
  const size_t limit_bytes_;
  mutable Mutex mutex_;
  // A deque keeps the written message's address.
  std::deque<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // Of the queue.
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status final_status_;  // Written once under the lock, before finished_.
};

}  // namespace tokenrouter
