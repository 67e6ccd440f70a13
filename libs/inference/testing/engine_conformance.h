// The contract of every engine, as tests. A test file of an engine includes this and writes
//   INSTANTIATE_TEST_SUITE_P(Fake, EngineConformanceTest, testing::Values(EngineCase{"fake",
//   Make})); INSTANTIATE_TEST_SUITE_P(Fake, EngineConformanceDeathTest, ...);   // in binaries that
//   may fork
// Identity is exact: ids, log-probabilities and signals must be equal bit for bit, however rows are
// cut, batched, forked or laid out. Test-only.
// REQUIRES of the engine made: at least 256 tokens of context and of KV memory, 50 usable ids, and
// no sequences.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "libs/inference/engine.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {

struct EngineCase {
  std::string name;
  std::function<std::unique_ptr<Engine>()> make;
  friend void PrintTo(const EngineCase& value, std::ostream* out) { *out << value.name; }
};

inline void ExpectSameChoices(const std::vector<Choice>& a, const std::vector<Choice>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].id, b[i].id) << "choice " << i;
    EXPECT_EQ(a[i].logprob, b[i].logprob) << "choice " << i;
    EXPECT_EQ(a[i].signals.entropy, b[i].signals.entropy) << "choice " << i;
    EXPECT_EQ(a[i].signals.max_probability, b[i].signals.max_probability) << "choice " << i;
    EXPECT_EQ(a[i].signals.margin, b[i].signals.margin) << "choice " << i;
    EXPECT_EQ(a[i].signals.top_logits, b[i].signals.top_logits) << "choice " << i;
  }
}

class EngineConformanceTest : public testing::TestWithParam<EngineCase> {
 protected:
  using Ids = std::vector<TokenId>;
  static constexpr SequenceId kA{1}, kB{2}, kC{3}, kD{4};

  void SetUp() override {
    engine_ = GetParam().make();
    signals_ = {.max_probability = true, .margin = true, .top_logits = 3};
    greedy_.parameters.temperature = 0.0f;
    sampled_.parameters = {.temperature = 1.0f, .seed = 17};
    total_ = engine_->unallocated_blocks();
  }

  Ids RandomIds(int count, uint64_t seed) const {
    std::mt19937_64 random(seed);
    Ids ids(count);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % engine_->info().usable_ids);
    return ids;
  }

  StepRow Row(SequenceId sequence, std::span<const TokenId> ids, int choices,
              const SamplingContext& context) const {
    return {.sequence = sequence,
            .first = engine_->Length(sequence),
            .new_ids = ids,
            .choices = choices,
            .sampling = &context,
            .signals = signals_};
  }

  // One step of one row.
  std::vector<Choice> Step(SequenceId sequence, std::span<const TokenId> ids, int choices,
                           const SamplingContext& context) {
    StepResult result;
    const absl::Status status = engine_->Step({{Row(sequence, ids, choices, context)}}, &result);
    EXPECT_THAT(status, IsOk());
    if (!status.ok() || result.choices.size() != 1) return {};
    EXPECT_EQ(result.choices[0].size(), static_cast<size_t>(choices));
    return result.choices[0];
  }

  // The choices after `ids` on a new sequence that is released again.
  std::vector<Choice> Fresh(std::span<const TokenId> ids, int choices,
                            const SamplingContext& context) {
    std::vector<Choice> result = Step(kFreshSequence, ids, choices, context);
    engine_->Release(kFreshSequence);
    return result;
  }

  static constexpr SequenceId kFreshSequence{999};
  std::unique_ptr<Engine> engine_;
  SamplingContext greedy_, sampled_;
  SignalRequest signals_;
  int64_t total_ = 0;
};
using EngineConformanceDeathTest = EngineConformanceTest;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EngineConformanceTest);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EngineConformanceDeathTest);

TEST_P(EngineConformanceTest, DescribesItself) {
  const EngineInfo& info = engine_->info();
  EXPECT_FALSE(info.model_name.empty());
  EXPECT_FALSE(info.numerics_class.empty());
  EXPECT_GE(info.usable_ids, 50);
  EXPECT_GE(info.context_limit, 256);
  EXPECT_GE(info.total_blocks * info.block_size, 256);
  EXPECT_EQ(total_, info.total_blocks);
  EXPECT_GE(engine_->Predict(1, 1), absl::ZeroDuration());
}

TEST_P(EngineConformanceTest, ChunkingChangesNothing) {
  const Ids ids = RandomIds(45, 1);
  for (const SamplingContext* context : {&greedy_, &sampled_}) {
    const std::vector<Choice> whole = Fresh(ids, 1, *context);
    for (const size_t chunk : {1, 7, 16, 44}) {
      std::vector<Choice> last;
      for (size_t at = 0; at < ids.size(); at += chunk) {
        const size_t count = std::min(chunk, ids.size() - at);
        last = Step(kA, std::span(ids).subspan(at, count), at + count == ids.size(), *context);
      }
      EXPECT_EQ(engine_->Length(kA), 45);
      ExpectSameChoices(last, whole);
      engine_->Release(kA);
    }
  }
}

TEST_P(EngineConformanceTest, ManyChoicesAreThoseOfSingleSteps) {
  const Ids ids = RandomIds(20, 2);
  const std::vector<Choice> together = Fresh(ids, 6, sampled_);
  std::vector<Choice> single;
  Step(kA, std::span(ids).first(14), 0, sampled_);
  for (size_t i = 14; i < ids.size(); ++i) {
    single.push_back(Step(kA, std::span(ids).subspan(i, 1), 1, sampled_).at(0));
  }
  ExpectSameChoices(together, single);
}

TEST_P(EngineConformanceTest, PenaltiesOfManyChoicesAreThoseOfSingleSteps) {
  const Ids ids = RandomIds(12, 3);
  SamplingContext context = sampled_;
  context.parameters.frequency_penalty = 1.5f;
  context.parameters.repetition_penalty = 1.5f;
  context.generated_counts = {{ids[7], 2}};
  const std::vector<Choice> together = Fresh(ids, 4, context);
  std::vector<Choice> single;
  Step(kA, std::span(ids).first(8), 0, context);
  for (size_t i = 8; i < ids.size(); ++i) {
    single.push_back(Step(kA, std::span(ids).subspan(i, 1), 1, context).at(0));
    if (i + 1 < ids.size()) ++context.generated_counts[ids[i + 1]];
  }
  ExpectSameChoices(together, single);
}

TEST_P(EngineConformanceTest, OtherRowsChangeNothing) {
  const Ids a = RandomIds(30, 4), b = RandomIds(3, 5), c = RandomIds(17, 6);
  const std::vector<Choice> alone_a = Fresh(a, 2, sampled_), alone_b = Fresh(b, 1, greedy_);
  StepResult result;
  ASSERT_THAT(
      engine_->Step({{Row(kB, b, 1, greedy_), Row(kC, c, 0, greedy_), Row(kA, a, 2, sampled_)}},
                    &result),
      IsOk());
  ASSERT_EQ(result.choices.size(), 3u);
  ExpectSameChoices(result.choices[0], alone_b);
  EXPECT_TRUE(result.choices[1].empty());
  ExpectSameChoices(result.choices[2], alone_a);
}

TEST_P(EngineConformanceTest, LayoutChangesNothing) {
  const Ids ids = RandomIds(50, 7);
  const std::vector<Choice> expected = Fresh(ids, 1, greedy_);
  // Leaves holes between blocks in use, then lets two sequences grow into them alternately.
  const Ids other = RandomIds(engine_->info().block_size, 8);
  for (uint64_t i = 100; i < 106; ++i) Step({i}, other, 0, greedy_);
  for (uint64_t i = 100; i < 106; i += 2) engine_->Release({i});
  std::vector<Choice> last;
  for (size_t at = 0; at < ids.size(); at += 10) {
    last = Step(kA, std::span(ids).subspan(at, 10), 1, greedy_);
    Step(kB, std::span(other).first(1), 0, greedy_);
  }
  ExpectSameChoices(last, expected);
}

TEST_P(EngineConformanceTest, TruncationForgetsTheRest) {
  const Ids ids = RandomIds(40, 9), other = RandomIds(9, 10);
  for (const Position keep : {0, 1, 16, 23, 39, 40}) {
    Step(kA, ids, 0, greedy_);
    engine_->Truncate(kA, keep);
    EXPECT_EQ(engine_->Length(kA), keep);
    Ids joined(ids.begin(), ids.begin() + keep);
    joined.insert(joined.end(), other.begin(), other.end());
    ExpectSameChoices(Step(kA, other, 2, sampled_), Fresh(joined, 2, sampled_));
    engine_->Release(kA);
  }
  EXPECT_EQ(engine_->unallocated_blocks(), total_);
}

TEST_P(EngineConformanceTest, ForksGoTheirOwnWays) {
  const Ids ids = RandomIds(40, 11), left = RandomIds(20, 12), right = RandomIds(20, 13);
  for (const Position at : {0, 5, 16, 32, 37, 40}) {
    Step(kA, ids, 0, greedy_);
    ASSERT_THAT(engine_->Fork(kA, kB, at), IsOk());
    EXPECT_EQ(engine_->Length(kB), at);
    Ids child(ids.begin(), ids.begin() + at), parent = ids;
    child.insert(child.end(), right.begin(), right.end());
    parent.insert(parent.end(), left.begin(), left.end());
    const std::vector<Choice> expected_child = Fresh(child, 1, sampled_);
    ExpectSameChoices(Step(kB, right, 1, sampled_), expected_child);
    ExpectSameChoices(Step(kA, left, 1, sampled_), Fresh(parent, 1, sampled_));
    // The child outlives its parent.
    engine_->Release(kA);
    engine_->Truncate(kB, engine_->Length(kB) - 1);
    ExpectSameChoices(Step(kB, std::span(right).last(1), 1, sampled_), expected_child);
    engine_->Release(kB);
  }
  EXPECT_EQ(engine_->unallocated_blocks(), total_);
}

TEST_P(EngineConformanceTest, TruncationIntoASharedBlockLeavesTheOtherAlone) {
  const int block = engine_->info().block_size;
  const Ids ids = RandomIds(2 * block, 14), other = RandomIds(3, 15);
  Step(kA, ids, 0, greedy_);
  ASSERT_THAT(engine_->Fork(kA, kB, 2 * block), IsOk());
  engine_->Truncate(kB, block + 1);
  Step(kB, other, 1, greedy_);
  Ids joined = ids;
  joined.push_back(other[0]);
  ExpectSameChoices(Step(kA, std::span(other).first(1), 1, greedy_), Fresh(joined, 1, greedy_));
}

TEST_P(EngineConformanceTest, ReleasedIdsStartAnew) {
  const Ids ids = RandomIds(20, 16);
  const std::vector<Choice> expected = Fresh(ids, 1, greedy_);
  Step(kA, RandomIds(33, 17), 0, greedy_);
  engine_->Release(kA);
  engine_->Release(kA);
  engine_->Release({12345});
  EXPECT_EQ(engine_->Length(kA), 0);
  EXPECT_EQ(engine_->unallocated_blocks(), total_);
  ExpectSameChoices(Step(kA, ids, 1, greedy_), expected);
}

TEST_P(EngineConformanceTest, TooFewBlocksTakeNothing) {
  const EngineInfo& info = engine_->info();
  const int64_t limit = std::min<int64_t>(info.context_limit, 4096);
  // Rows of whole contexts until the memory is full.
  const Ids ids = RandomIds(static_cast<int>(limit), 18);
  if (info.total_blocks * info.block_size > 64 * limit) GTEST_SKIP() << "too much memory to fill";
  Step(kA, std::span(ids).first(5), 0, greedy_);
  const std::vector<Choice> expected = Fresh(std::span(ids).first(6), 1, greedy_);
  StepBatch batch;
  batch.rows.push_back(Row(kA, std::span(ids).subspan(5, 1), 1, greedy_));
  for (uint64_t i = 0; i * limit <= static_cast<uint64_t>(info.total_blocks * info.block_size);
       ++i) {
    batch.rows.push_back(Row({100 + i}, ids, 0, greedy_));
  }
  const int64_t free = engine_->unallocated_blocks();
  StepResult result;
  EXPECT_THAT(engine_->Step(batch, &result), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(engine_->unallocated_blocks(), free);
  EXPECT_EQ(engine_->Length(kA), 5);
  EXPECT_EQ(engine_->Length({100}), 0);
  ExpectSameChoices(Step(kA, std::span(ids).subspan(5, 1), 1, greedy_), expected);
}

TEST_P(EngineConformanceTest, BadIdsAndTooLongRowsAreRefusedWhole) {
  const EngineInfo& info = engine_->info();
  const Ids good = RandomIds(4, 19);
  std::vector<Ids> bad = {{1, 2, -1}, {info.usable_ids}, Ids(info.context_limit + 1, 3)};
  Step(kA, good, 0, greedy_);
  const int64_t free = engine_->unallocated_blocks();
  for (const Ids& ids : bad) {
    StepResult result;
    EXPECT_THAT(engine_->Step({{Row(kA, good, 1, greedy_), Row(kB, ids, 1, greedy_)}}, &result),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(engine_->Length(kA), 4);
    EXPECT_EQ(engine_->Length(kB), 0);
    EXPECT_EQ(engine_->unallocated_blocks(), free);
  }
}

TEST_P(EngineConformanceTest, NoiseIsKeyedBySeedAndPosition) {
  const Ids ids = RandomIds(60, 20);
  SamplingContext context = sampled_;
  context.parameters.temperature = 2.0f;
  const std::vector<Choice> first = Fresh(ids, 60, context);
  ExpectSameChoices(Fresh(ids, 60, context), first);
  context.parameters.seed = 18;
  const std::vector<Choice> second = Fresh(ids, 60, context);
  int different = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    different += first[i].id != second[i].id;
    EXPECT_EQ(first[i].signals.entropy, second[i].signals.entropy);
  }
  EXPECT_GT(different, 0);
}

TEST_P(EngineConformanceTest, SignalsAreThoseOfOneDistribution) {
  for (const Choice& choice : Fresh(RandomIds(30, 21), 30, greedy_)) {
    const StepSignals& signals = choice.signals;
    EXPECT_GE(signals.entropy, 0.0f);
    EXPECT_GT(signals.max_probability, 0.0f);
    EXPECT_LE(signals.max_probability, 1.0f);
    EXPECT_GE(signals.margin, 0.0f);
    EXPECT_LE(signals.margin, signals.max_probability);
    EXPECT_NEAR(std::exp(choice.logprob), signals.max_probability, 1e-4) << "greedy";
    ASSERT_EQ(signals.top_logits.size(), 3u);
    EXPECT_EQ(signals.top_logits[0].first, choice.id);
    EXPECT_GE(signals.top_logits[0].second, signals.top_logits[1].second);
    EXPECT_GE(signals.top_logits[1].second, signals.top_logits[2].second);
  }
}

TEST_P(EngineConformanceTest, TwoEnginesOfOneKindAgree) {
  const Ids ids = RandomIds(25, 22);
  const std::vector<Choice> here = Fresh(ids, 3, sampled_);
  const std::string numerics_class = engine_->info().numerics_class;
  engine_ = GetParam().make();
  EXPECT_EQ(engine_->info().numerics_class, numerics_class);
  ExpectSameChoices(Fresh(ids, 3, sampled_), here);
}

TEST_P(EngineConformanceTest, AllBlocksComeBack) {
  std::mt19937_64 random(23);
  const Ids ids = RandomIds(256, 24);
  for (int round = 0; round < 60; ++round) {
    const SequenceId id{1 + random() % 4};
    const Position length = engine_->Length(id);
    switch (random() % 4) {
      case 0:
        engine_->Truncate(id, static_cast<Position>(random() % (length + 1)));
        break;
      case 1:
        if (length > 0) {
          engine_->Release({50});
          (void)engine_->Fork(id, {50}, static_cast<Position>(random() % (length + 1)));
        }
        break;
      default: {
        const int64_t count = std::min<int64_t>(1 + random() % 30, 200 - length);
        StepResult result;
        if (count > 0) {
          (void)engine_->Step({{Row(id, std::span(ids).first(count), 1, sampled_)}}, &result);
        }
      }
    }
  }
  for (const uint64_t id : {1, 2, 3, 4, 50}) engine_->Release({id});
  EXPECT_EQ(engine_->unallocated_blocks(), total_);
}

TEST_P(EngineConformanceDeathTest, BrokenCallsAreChecks) {
  const Ids ids = RandomIds(4, 25);
  Step(kA, ids, 0, greedy_);
  StepResult result;
  StepRow row = Row(kA, ids, 1, greedy_);
  row.first = 3;
  EXPECT_DEATH((void)engine_->Step({{row}}, &result), "starts at 3");
  EXPECT_DEATH((void)engine_->Step({{Row(kA, {}, 0, greedy_)}}, &result), "empty row");
  EXPECT_DEATH(engine_->Truncate(kA, 5), "");
  EXPECT_DEATH((void)engine_->Fork(kB, kC, 0), "");
  EXPECT_DEATH((void)engine_->Fork(kA, kA, 0), "");
}

}  // namespace tokenrouter
