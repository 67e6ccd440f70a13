// The phase of a request in the scheduler, and since when it is in it.
// Threads: lives on the scheduler's loop. Errors: an illegal change is a CHECK.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace tokenrouter {

// Legal changes, and what causes them:
//   kWaiting    -> kRunning, kReleasable  a worker of the small or the large side was found
//   kWaiting    -> kHeld                  likewise, but the client must catch up first
//   kHeld       -> kReleasable, kWaiting  the client caught up; there is a large worker or not
//   kHeld       -> kRunning               there is none, and the small model decodes to the end
//   kReleasable -> kRunning               the release policy released it
//   kReleasable -> kWaiting               its worker was lost
//   kRunning    -> all                    the decode grant moved, or its worker was lost
//   all         -> kEnded                 finished, rejected or abandoned; nothing follows
// A change to the same phase is a new decode grant, a reopen or another wait.
enum class Phase : uint8_t {
  kWaiting = 0,     // The side with the decode grant has no worker: it waits for a slot.
  kHeld = 1,        // The decode grant goes to the large side once the client has caught up.
  kReleasable = 2,  // The large side has the ids; the release policy decides when it runs.
  kRunning = 3,     // The side with the decode grant may write.
  kEnded = 4,
};
inline constexpr int kPhases = 5;
inline constexpr const char* kPhaseNames[kPhases] = {"waiting", "held", "releasable", "running",
                                                     "ended"};

class RequestPhase {
 public:
  // Begins in kWaiting. Errors name `request`, its number.
  RequestPhase(uint64_t request, absl::Time since) : request_(request), since_(since) {}

  Phase value() const { return value_; }
  const char* name() const { return kPhaseNames[static_cast<int>(value_)]; }
  // When the request came into this phase; a change to the same phase does not count.
  absl::Time since() const { return since_; }
  void Change(Phase to, absl::Time now);

  friend bool operator==(const RequestPhase& phase, Phase value) { return phase.value_ == value; }

 private:
  uint64_t request_;
  Phase value_ = Phase::kWaiting;
  absl::Time since_;
};

}  // namespace tokenrouter
