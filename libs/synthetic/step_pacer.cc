#include "libs/synthetic/step_pacer.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>

namespace tokenrouter {
namespace {

absl::Time Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace

void SleepingPacer::Start() {
  if (!exact_timers_) {
    // The default slack of 50 us would be late on every step. Failure only costs accuracy.
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    exact_timers_ = true;
  }
  start_ = Now();
}

void SleepingPacer::FinishAfter(absl::Duration time) {
  const absl::Time deadline = start_ + time - overslept_;
  const timespec until = absl::ToTimespec(deadline);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
  overslept_ = std::clamp(Now() - deadline, absl::ZeroDuration(), kMostOversleep);
}

}  // namespace tokenrouter
