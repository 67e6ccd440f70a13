// Deadlines of requests, earliest first. An entry is never removed early: whoever pops it checks
// whether it still applies, so that arming costs one heap push and there is no cost per token.
// Threads: lives on the scheduler's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "absl/time/time.h"

namespace tokenrouter {

struct Timer {
  enum class Kind : uint8_t { kDeadline, kWait, kStall, kGrant };
  absl::Time at;
  uint64_t request = 0;
  Kind kind = Kind::kDeadline;
};

class TimerQueue {
 public:
  void Arm(Timer timer) { heap_.push(timer); }
  // Removes and returns the next timer that is due.
  std::optional<Timer> PopDue(absl::Time now) {
    if (heap_.empty() || heap_.top().at > now) return std::nullopt;
    const Timer timer = heap_.top();
    heap_.pop();
    return timer;
  }
  size_t size() const { return heap_.size(); }

 private:
  struct Later {
    bool operator()(const Timer& a, const Timer& b) const {
      return std::tie(a.at, a.request, a.kind) > std::tie(b.at, b.request, b.kind);
    }
  };
  std::priority_queue<Timer, std::vector<Timer>, Later> heap_;
};

}  // namespace tokenrouter
