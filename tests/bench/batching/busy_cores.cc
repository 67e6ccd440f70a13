#include "tests/bench/batching/busy_cores.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace tokenrouter {
namespace {

constexpr int kLowestPriority = 19;

// Only calls that are safe after a fork of a program with threads.
[[noreturn]] void Spin() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int unused = nice(kLowestPriority);
  (void)unused;
  volatile unsigned turns = 0;
  while (true) turns = turns + 1;
}

}  // namespace

BusyCores::BusyCores() {
  for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core) {
    const pid_t child = fork();
    if (child == 0) Spin();
    if (child > 0) children_.push_back(child);
  }
}

BusyCores::~BusyCores() {
  for (const pid_t child : children_) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
}

}  // namespace tokenrouter
