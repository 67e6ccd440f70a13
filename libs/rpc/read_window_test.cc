#include "libs/rpc/read_window.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace tokenrouter {
namespace {

constexpr size_t kLimit = 3 * kLeastReadBytes;

class ReadWindowTest : public ::testing::Test {
 protected:
  // A message arrives, and the next is asked for.
  ReadCredit Read(size_t bytes) {
    ReadCredit credit = window_->Hold(bytes);
    window_->Next();
    return credit;
  }

  int reads_ = 0;
  const std::shared_ptr<ReadWindow> window_ =
      std::make_shared<ReadWindow>([this] { ++reads_; }, kLimit);
};

TEST_F(ReadWindowTest, ReadsOnOnlyWhileLessThanTheWindowWaits) {
  window_->Next();
  std::vector<ReadCredit> waiting;
  waiting.push_back(Read(kLeastReadBytes));
  waiting.push_back(Read(kLeastReadBytes));
  EXPECT_EQ(reads_, 3);
  waiting.push_back(Read(kLeastReadBytes));
  EXPECT_EQ(reads_, 3) << "the window is full";
  waiting.pop_back();
  EXPECT_EQ(reads_, 4) << "the owner has handled one";
  waiting.pop_back();
  EXPECT_EQ(reads_, 4) << "one read at a time";
}

TEST_F(ReadWindowTest, CountsSmallMessagesToo) {
  window_->Next();
  std::vector<ReadCredit> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(Read(1));
  EXPECT_EQ(reads_, 3);
}

TEST_F(ReadWindowTest, TakesAMessageLargerThanTheWindowAndWaitsForAllOfIt) {
  window_->Next();
  ReadCredit large = Read(10 * kLimit);
  EXPECT_EQ(reads_, 1);
  large = nullptr;
  EXPECT_EQ(reads_, 2);
}

TEST_F(ReadWindowTest, BeginsNoReadAfterItsEnd) {
  window_->Next();
  ReadCredit credit = Read(kLimit);
  window_->Close();
  credit = nullptr;
  window_->Next();
  EXPECT_EQ(reads_, 1);
}

}  // namespace
}  // namespace tokenrouter
