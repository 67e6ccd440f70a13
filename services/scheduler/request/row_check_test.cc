#include "services/scheduler/request/row_check.h"

#include <gtest/gtest.h>

#include "libs/routing/algorithm.h"
#include "services/scheduler/request/side_commands.h"
#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using S = ScriptedScheduler;

constexpr StreamId kWorker = 10;

class RowCheckTest : public ::testing::Test {
 protected:
  RowCheckTest() {
    wire::Open open;
    FillOpen(&request_, Role::kSmall, kWorker, 1, &open);
    request_.SetPhase(Phase::kRunning, absl::UnixEpoch());
  }
  std::optional<DropReason> Judge(const wire::RowReport& row) const {
    return RefusesRow(request_, Role::kSmall, kWorker, row);
  }

  RequestMachine request_{{.key = 1}, wire::GenerationSpec(), TokenHistory({1, 2, 3}), "", {}, 16};
};

TEST_F(RowCheckTest, AcceptsWhatContinuesTheHistory) {
  EXPECT_EQ(Judge(S::Row(1, 1, 3, {7})), std::nullopt);
  EXPECT_EQ(Judge(S::Row(1, 1, 4, {7})), DropReason::kBase);
  EXPECT_EQ(Judge(S::Row(1, 2, 3, {7})), DropReason::kEpoch);
  EXPECT_EQ(RefusesRow(request_, Role::kSmall, kWorker + 1, S::Row(1, 1, 3, {7})),
            DropReason::kEpoch);
}

TEST_F(RowCheckTest, OnlyTheSideWithTheDecodeGrantWrites) {
  request_.SetGrant({.role = Role::kLarge});
  EXPECT_EQ(Judge(S::Row(1, 1, 3, {7})), DropReason::kNotGranted);
}

TEST_F(RowCheckTest, RefusesColumnsAndTailsThatDoNotFit) {
  wire::RowReport row = S::Row(1, 1, 3, {7});
  row.set_authors("\3");
  EXPECT_EQ(Judge(row), DropReason::kMalformed) << "an author that is no model";
  row = S::Row(1, 1, 3, {7});
  row.add_entropies(0.5f);
  EXPECT_EQ(Judge(row), DropReason::kMalformed);
  row = S::Row(1, 1, 3, {7});
  row.add_tail(8);
  EXPECT_EQ(Judge(row), DropReason::kMalformed) << "a tail without a handoff";
  row = S::HandingOff(S::Row(1, 1, 3, {7}), Role::kLarge, {8});
  EXPECT_EQ(Judge(row), std::nullopt);
  row.mutable_handoff()->set_verify(2);
  EXPECT_EQ(Judge(row), DropReason::kMalformed) << "more to verify than there is";
  row = S::Row(1, 1, 3, {7});
  row.set_state(std::string(kMaxRequestState + 1, 's'));
  EXPECT_EQ(Judge(row), DropReason::kMalformed);
}

}  // namespace
}  // namespace tokenrouter
