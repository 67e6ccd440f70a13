#include "services/scheduler/placement/eviction_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

EvictionCandidate Resident(Position known, double until_ms, double resident_ms = 0) {
  return {.known = known,
          .blocks = (known + 15) / 16,
          .until_visit = absl::Milliseconds(until_ms),
          .resident_for = absl::Milliseconds(resident_ms)};
}

// As the large model of the h200 curves: 0.128 ms an id, so recomputing 256 ids costs 33 ms.
EvictionTerms Terms(EvictionNeed need, int64_t blocks = 0, int32_t residents = 8) {
  return {.need = need, .blocks = blocks, .residents = residents, .id_ms = 0.128};
}

TEST(ChooseVictims, EvictsNoneWhereThatDoesNotPay) {
  struct Row {
    const char* what;
    EvictionCandidate resident;
    int32_t residents;
    bool goes;
  };
  const Row rows[] = {
      {"comes back in 33 ms, costs 33 ms with eight residents", Resident(256, 33), 8, false},
      {"the same with one resident: the device would be idle for as long", Resident(256, 33), 1,
       true},
      {"idle for just its price", Resident(1000, 1025), 8, true},
      {"idle for just less", Resident(1000, 1023), 8, false},
      {"short and so cheap", Resident(16, 33), 8, true},
      {"makes no progress", Resident(256, 1000), 8, true},
      {"makes no progress, but is very long", Resident(8192, 1000), 8, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(
        !ChooseVictims({&row.resident, 1}, Terms(EvictionNeed::kPays, 0, row.residents)).empty(),
        row.goes)
        << row.what;
  }
}

TEST(ChooseVictims, ValueIsTimeUntilTheVisitPerIdAndNotLastUse) {
  const std::vector<EvictionCandidate> residents = {
      Resident(1600, 2000),  // Away for longest, but the most expensive: 1.25 ms an id.
      Resident(160, 400),    // 2.5
      Resident(160, 300),    // 1.9
      Resident(16, 20),      // 1.25
  };
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kGrowth)), ElementsAre(1));
}

TEST(ChooseVictims, TakesAsManyAsTheBlocksNeedAndNoMore) {
  const std::vector<EvictionCandidate> residents = {Resident(32, 100), Resident(320, 500),
                                                    Resident(64, 150)};
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kGrowth, 2)), ElementsAre(0));
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kGrowth, 6)), ElementsAre(0, 2));
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kGrowth, 20)), ElementsAre(1))
      << "the long one suffices";
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kGrowth, 26)), ElementsAre(0, 2, 1));
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kGrowth, 27)), IsEmpty())
      << "no sequence is evicted in vain";
}

TEST(ChooseVictims, AnOverdueRequestEvictsAnAmortisedReservation) {
  // The price with eight residents is 262 ms; at a share of 10 % it is amortised after 2.6 s.
  const std::vector<EvictionCandidate> residents = {Resident(256, 33, 2600),
                                                    Resident(256, 33, 2700)};
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kPays)), IsEmpty());
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kOverdue)), ElementsAre(1));
}

TEST(ChooseVictims, AReservationOpenedInBackgroundGivesWayToAnyGrant) {
  std::vector<EvictionCandidate> residents = {Resident(256, 1000), Resident(4096, 10)};
  residents[1].used = false;
  EXPECT_THAT(ChooseVictims(residents, Terms(EvictionNeed::kPays)), ElementsAre(1));
}

TEST(ChooseVictims, NoCandidatesYieldNoVictims) {
  EXPECT_THAT(ChooseVictims({}, Terms(EvictionNeed::kGrowth)), IsEmpty());
}

}  // namespace
}  // namespace tokenrouter
