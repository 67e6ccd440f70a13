// AttachInbox is the queue between the stream's threads and the engine thread: command frames, the
// end of the stream, and wake-ups. Ownership: owns what it holds. Threads: thread-safe; one
// consumer. Units: at most `limit` frames wait; the end of the stream always fits. The stream's
// read window (libs/rpc/read_window.h) keeps what waits below that. Errors: Push returns false when
// full; the stream is then to be ended, since a lost frame cannot be made good.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/concurrency/mutex.h"
#include "libs/rpc/read_window.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

class AttachInbox {
 public:
  struct Frame {
    wire::CommandFrame command;
    absl::Time arrived;
    ReadCredit credit = nullptr;  // Held until the frame has been applied.
  };
  struct Content {
    std::vector<Frame> frames;          // In order of arrival; all before the end.
    std::optional<absl::Status> ended;  // The stream is gone, with its status.
    bool woken = false;
  };

  explicit AttachInbox(size_t limit) : limit_(limit) {}

  // Drops what an earlier stream left. Frames and ends of any other stream are ignored from now on.
  void Begin(uint64_t stream) {
    MutexLock lock(&mutex_);
    stream_ = stream;
    content_.frames.clear();
    content_.ended.reset();
  }
  // `now` is kept with the frame: it may wait for the end of a step.
  [[nodiscard]] bool Push(uint64_t stream, wire::CommandFrame frame, absl::Time now,
                          ReadCredit credit = nullptr) {
    MutexLock lock(&mutex_);
    if (stream != stream_) return true;
    if (content_.frames.size() >= limit_) return false;
    content_.frames.push_back({std::move(frame), now, std::move(credit)});
    ready_.Signal();
    return true;
  }
  void End(uint64_t stream, const absl::Status& status) {
    MutexLock lock(&mutex_);
    if (stream != stream_) return;
    content_.ended = status;
    ready_.Signal();
  }
  void Wake() {
    MutexLock lock(&mutex_);
    content_.woken = true;
    ready_.Signal();
  }

  // Takes everything; waits up to `timeout` for something. May return empty earlier.
  Content Take(absl::Duration timeout) {
    MutexLock lock(&mutex_);
    if (content_.frames.empty() && !content_.ended.has_value() && !content_.woken &&
        timeout > absl::ZeroDuration()) {
      ready_.WaitFor(&mutex_, timeout);
    }
    return std::exchange(content_, Content());
  }

 private:
  const size_t limit_;
  Mutex mutex_;
  CondVar ready_;
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;
  Content content_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokenrouter
