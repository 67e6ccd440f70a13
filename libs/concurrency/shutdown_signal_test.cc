#include "libs/concurrency/shutdown_signal.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

namespace tokenrouter {
namespace {

TEST(ShutdownSignalTest, ReturnsTheSignalInsteadOfDying) {
  BlockShutdownSignals();
  ASSERT_EQ(pthread_kill(pthread_self(), SIGTERM), 0);
  EXPECT_EQ(WaitForShutdownSignal(), SIGTERM);
}

}  // namespace
}  // namespace tokenrouter
