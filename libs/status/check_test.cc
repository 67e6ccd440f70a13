#include "libs/status/check.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

TEST(CheckTest, PassesSilentlyWhenTheConditionHolds) { TR_CHECK(1 + 1 == 2) << "never evaluated"; }

TEST(CheckDeathTest, PrintsConditionAndValuesThenAborts) {
  const int free_blocks = -1;
  EXPECT_DEATH(TR_CHECK(free_blocks >= 0) << "free " << free_blocks,
               "check_test.cc.*free_blocks >= 0 free -1");
}

}  // namespace
}  // namespace tokenrouter
