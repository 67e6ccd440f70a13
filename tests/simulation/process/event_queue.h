// EventQueue is simulated time: closures ordered by their due time, first in first out among equal
// times. Nothing else moves the clock. Single-threaded; a run is a pure function of what is
// scheduled.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace tokenrouter::simulation {

class EventQueue {
 public:
  static absl::Time Start() { return absl::UnixEpoch() + absl::Hours(1000); }

  absl::Time now() const { return now_; }
  void After(absl::Duration delay, std::function<void()> action) {
    events_.push({now_ + delay, next_++, std::move(action)});
  }
  void At(absl::Time when, std::function<void()> action) {
    events_.push({std::max(when, now_), next_++, std::move(action)});
  }
  // Runs the next event; false when there is none before `until`.
  bool Step(absl::Time until) {
    if (events_.empty() || events_.top().when > until) return false;
    const Event event = events_.top();
    events_.pop();
    now_ = event.when;
    ++ran_;
    event.action();
    return true;
  }
  uint64_t ran() const { return ran_; }

 private:
  struct Event {
    absl::Time when;
    uint64_t number = 0;
    std::function<void()> action;
    friend bool operator<(const Event& a, const Event& b) {
      return std::tie(b.when, b.number) < std::tie(a.when, a.number);
    }
  };
  std::priority_queue<Event> events_;
  absl::Time now_ = Start();
  uint64_t next_ = 0;
  uint64_t ran_ = 0;
};

}  // namespace tokenrouter::simulation
