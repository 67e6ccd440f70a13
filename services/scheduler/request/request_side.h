// RequestSide is what the scheduler knows about a request on one role: the worker it is open on,
// what that worker was sent, and whether the request is suspected of having killed workers.
// Units: positions are canonical, prompt included. Threads: lives on the scheduler's loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libs/tokens/token_types.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/options/reasons.h"

namespace tokenrouter {

struct RequestSide {
  StreamId worker = 0;  // 0: it is not open on any worker.
  // The lost worker that it was open on, while it is not decided yet where it goes; 0: none.
  StreamId awaited = 0;
  uint32_t epoch = 0;
  Position known = 0;  // How many ids the worker was sent.
  Position read = 0;   // How many of the known ids are in its KV, as far as is known.
  Position credit = 0;
  // The worker reported that it is credit-blocked, and no newer credit is on its way.
  bool credit_blocked = false;
  int numerics_class = 0;  // Of the last worker; 0: none yet. Kept when the worker is lost.
  ReopenCause lost_by = ReopenCause::kWorkerLost;  // Valid once epoch > 0 and worker is 0.
  // The worker_ids of the workers in a row that were lost while it ran there.
  std::vector<std::string> lost_on;
  int rows = 0;  // Accepted since it was opened.

  // Above 0 it is suspected.
  int losses() const { return static_cast<int>(lost_on.size()); }

  void Know(Position ids);
  // The worker reports that it knows only `have` ids. False when the report is stale or no change.
  bool Forget(uint32_t report_epoch, Position have);
  // It is no longer open on any worker.
  void Lose(ReopenCause cause);
  // The worker was lost while the request ran there. One that is lost again was not dead: a process
  // that crashed comes back under another worker_id.
  void Suspect(const std::string& worker_id);
  void Absolve() { lost_on.clear(); }
};

}  // namespace tokenrouter
