#include "services/scheduler/workers/worker_choice.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokenrouter {
namespace {

WorkerCandidate Candidate(StreamId stream) { return {.stream = stream, .max_sequences = 8}; }

TEST(ChooseWorker, PrefersClassThenHeldIdsThenLoadThenBlocksThenAge) {
  WorkerCandidate same_class = Candidate(5), holder = Candidate(4), idle = Candidate(3),
                  roomy = Candidate(2), older = Candidate(1);
  for (WorkerCandidate* other : {&holder, &idle, &roomy, &older}) other->same_class = false;
  holder.held = 10;
  for (WorkerCandidate* busy : {&same_class, &holder}) busy->sequences = 7;
  for (WorkerCandidate* some : {&roomy, &older}) some->sequences = 1;
  roomy.free_blocks = 50;
  std::vector<WorkerCandidate> candidates = {older, roomy, idle, holder, same_class};
  while (!candidates.empty()) {
    EXPECT_EQ(ChooseWorker(candidates), candidates.size() - 1);
    candidates.pop_back();
  }
  EXPECT_EQ(ChooseWorker(candidates), std::nullopt);
}

TEST(ChooseWorker, CachedKvOutweighsSomeSequencesMore) {
  WorkerCandidate cached = Candidate(2), idle = Candidate(1);
  cached.prefix_worth = 4;
  cached.sequences = 3;
  EXPECT_EQ(ChooseWorker(std::vector{idle, cached}), 1u);
  cached.sequences = 5;
  EXPECT_EQ(ChooseWorker(std::vector{idle, cached}), 0u);
}

TEST(ChooseWorker, SkipsFullAndClosedWorkers) {
  WorkerCandidate full = Candidate(1), closed = Candidate(2), unlimited = Candidate(3);
  full.sequences = 8;
  closed.open_for_new = false;
  unlimited.max_sequences = 0;
  unlimited.sequences = 1000;
  EXPECT_EQ(ChooseWorker(std::vector{full, closed}), std::nullopt);
  EXPECT_EQ(ChooseWorker(std::vector{full, closed, unlimited}), 2u);
}

TEST(ChooseWorker, SkipsWorkersWithoutBlocks) {
  WorkerCandidate full = Candidate(1), other = Candidate(2);
  full.lacking_blocks = 1;
  EXPECT_EQ(ChooseWorker(std::vector{full}), std::nullopt);
  EXPECT_EQ(ChooseWorker(std::vector{full, other}), 1u);
}

}  // namespace
}  // namespace tokenrouter
