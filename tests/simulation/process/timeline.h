// Timeline is what happened in a simulated run, as a table that a person reads: the time, who,
// what. It stays empty in ordinary runs, where texts would cost more than the run.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/simulation/process/event_queue.h"

namespace tokenrouter::simulation {

class Timeline {
 public:
  explicit Timeline(const EventQueue* events) : events_(events), start_(events->now()) {}

  // Every entry is printed as it is made, so that a run that dies leaves its last moments.
  void Print() { on_ = true; }

  // `what` are the parts of a text (absl::StrCat); they are put together only when it is wanted.
  template <typename... Parts>
  void Note(std::string_view who, const Parts&... what) const {
    if (!on_) return;
    const double at = absl::ToDoubleSeconds(events_->now() - start_);
    std::printf("%12.6f  %-12s  %s\n", at, std::string(who).c_str(), absl::StrCat(what...).c_str());
    std::fflush(stdout);
  }

 private:
  const EventQueue* const events_;
  const absl::Time start_;
  bool on_ = false;
};

}  // namespace tokenrouter::simulation
