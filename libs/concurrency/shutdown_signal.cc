#include "libs/concurrency/shutdown_signal.h"

#include <pthread.h>
#include <signal.h>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

sigset_t ShutdownSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void BlockShutdownSignals() {
  const sigset_t signals = ShutdownSignals();
  TR_CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
}

int WaitForShutdownSignal() {
  const sigset_t signals = ShutdownSignals();
  int received = 0;
  TR_CHECK(sigwait(&signals, &received) == 0);
  return received;
}

}  // namespace tokenrouter
