// Turns SIGTERM and SIGINT into an ordinary return, so that draining happens on the main thread.
#pragma once

#include "absl/time/time.h"

namespace tokenrouter {

// Blocks the two signals in the calling thread and in every thread it starts later.
// REQUIRES: called first thing in main.
void BlockShutdownSignals();

// Waits for one of them; returns its number. Later ones stay pending.
int WaitForShutdownSignal();

}  // namespace tokenrouter
