// Deadlines of requests, earliest first: at most one entry per request and kind, so the queue is
// bounded by the live requests. Arming again replaces. Threads: lives on the scheduler's loop.
// Cost: O(log entries) per call, none per token.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace tokenrouter {

struct Timer {
  enum class Kind : uint8_t { kDeadline, kWait, kStall, kGrant };
  static constexpr Kind kKinds[] = {Kind::kDeadline, Kind::kWait, Kind::kStall, Kind::kGrant};
  absl::Time at;
  uint64_t request = 0;
  Kind kind = Kind::kDeadline;

  friend bool operator<(const Timer& a, const Timer& b) {
    return std::tie(a.at, a.request, a.kind) < std::tie(b.at, b.request, b.kind);
  }
};

class TimerQueue {
 public:
  void Arm(Timer timer) {
    Cancel(timer.request, timer.kind);
    due_.insert(timer);
    armed_.emplace(Name(timer.request, timer.kind), timer.at);
  }
  void Cancel(uint64_t request, Timer::Kind kind) {
    const auto found = armed_.find(Name(request, kind));
    if (found == armed_.end()) return;
    due_.erase({found->second, request, kind});
    armed_.erase(found);
  }
  // The request has ended.
  void CancelAll(uint64_t request) {
    for (const auto kind : Timer::kKinds) Cancel(request, kind);
  }
  void Clear() {
    due_.clear();
    armed_.clear();
  }
  // Removes and returns the next timer that is due.
  std::optional<Timer> PopDue(absl::Time now) {
    if (due_.empty() || due_.begin()->at > now) return std::nullopt;
    const Timer timer = *due_.begin();
    Cancel(timer.request, timer.kind);
    return timer;
  }
  size_t size() const { return due_.size(); }

 private:
  using Name = std::pair<uint64_t, Timer::Kind>;

  absl::btree_set<Timer> due_;
  absl::flat_hash_map<Name, absl::Time> armed_;
};

}  // namespace tokenrouter
