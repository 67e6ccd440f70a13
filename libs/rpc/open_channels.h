// OpenChannels keeps the channel of every stream that gRPC still runs and lets go of it on its
// owner's thread. Why: gRPC's callback threads live as long as the process has a channel that uses
// them; whoever drops the last one waits for them to end, so a callback that drops it waits for
// itself. A stub holds its channel and counts as one here.
// Ownership: owned by whoever starts the streams; the destructor waits until all have closed.
// Threads: Closed may run on any thread; the rest belongs to the owner's thread, never to gRPC's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "libs/concurrency/mutex.h"

namespace tokenrouter {

class OpenChannels {
 public:
  OpenChannels() = default;
  ~OpenChannels() {
    MutexLock lock(&mutex_);
    while (open_ > 0) closed_.Wait(&mutex_);
  }
  OpenChannels(const OpenChannels&) = delete;
  OpenChannels& operator=(const OpenChannels&) = delete;

  // Keeps the channel of stream `key`, which is not kept yet, and drops those of closed streams.
  void Keep(uint64_t key, std::shared_ptr<const void> channel) {
    std::vector<std::shared_ptr<const void>> dropped;  // After the lock: dropping may wait.
    MutexLock lock(&mutex_);
    for (auto it = kept_.begin(); it != kept_.end();) {
      if (it->second.open) {
        ++it;
        continue;
      }
      dropped.push_back(std::move(it->second.channel));
      it = kept_.erase(it);
    }
    kept_.emplace(key, Kept{std::move(channel)});
    ++open_;
  }

  // The last act of the stream's on_closed.
  void Closed(uint64_t key) {
    MutexLock lock(&mutex_);
    kept_.at(key).open = false;
    --open_;
    closed_.SignalAll();
  }

 private:
  struct Kept {
    std::shared_ptr<const void> channel;
    bool open = true;
  };

  Mutex mutex_;
  CondVar closed_;
  std::map<uint64_t, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tokenrouter
