// Tests what the engine allocates, releases and refuses.
#include <gtest/gtest.h>

#include <numeric>

#include "libs/status/status_matchers.h"
#include "tests/engine/engine_driver.h"
#include "tests/engine/tiny_engine.h"
#include "tests/support/tiny_model.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<TokenId> Ids(int count) {
  std::vector<TokenId> ids(count);
  std::iota(ids.begin(), ids.end(), 10);
  return ids;
}

class EngineLifecycleTest : public ::testing::Test {
 protected:
  absl::Status Step(const std::vector<DrivenRow>& rows) {
    StepResult result;
    return EngineDriver(engine_.get()).Step(rows, &result);
  }

  const std::unique_ptr<TorchEngine> engine_ =
      MakeEngine(TinyEngineOptions("llama", WeightFormat::kInt8));
  const int64_t all_blocks_ = engine_->info().total_blocks;
};

TEST_F(EngineLifecycleTest, StatesItsSizes) {
  EXPECT_EQ(all_blocks_, 64);
  EXPECT_EQ(engine_->info().block_size, 32);
  EXPECT_EQ(engine_->info().usable_ids, 259);
  EXPECT_EQ(engine_->info().context_limit, 2048);
  EXPECT_EQ(engine_->unallocated_blocks(), all_blocks_);
}

TEST_F(EngineLifecycleTest, FreesAllBlocksWhenSequencesAreReleased) {
  ASSERT_THAT(Step({{.sequence = 1, .ids = Ids(40), .choices = 1}, {.sequence = 2, .ids = Ids(1)}}),
              IsOk());
  ASSERT_THAT(engine_->Fork({1}, {3}, 35), IsOk());
  EXPECT_EQ(engine_->Length({1}), 40);
  EXPECT_EQ(engine_->Length({3}), 35);
  EXPECT_EQ(engine_->unallocated_blocks(),
            all_blocks_ - 4);  // The first block of 1 and 3 is shared.
  engine_->Truncate({1}, 32);
  EXPECT_EQ(engine_->unallocated_blocks(), all_blocks_ - 3);
  for (const uint64_t sequence : {1, 2, 3, 4}) engine_->Release({sequence});
  EXPECT_EQ(engine_->unallocated_blocks(), all_blocks_);
  EXPECT_EQ(engine_->Length({1}), 0);
}

TEST_F(EngineLifecycleTest, TakesNothingWhenBlocksAreTooFew) {
  for (uint64_t sequence = 1; engine_->unallocated_blocks() >= 3; ++sequence) {
    ASSERT_THAT(Step({{.sequence = sequence, .ids = Ids(96)}}), IsOk());
  }
  const int64_t free = engine_->unallocated_blocks();
  EXPECT_THAT(Step({{.sequence = 1, .ids = Ids(1)}, {.sequence = 900, .ids = Ids(64)}}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(engine_->unallocated_blocks(), free);
  EXPECT_EQ(engine_->Length({1}), 96);
  EXPECT_EQ(engine_->Length({900}), 0);
}

TEST_F(EngineLifecycleTest, RefusesWhatABatchMayNotHold) {
  const auto invalid = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(Step({{.sequence = 1, .ids = {259}}}), invalid("is outside [0, 259)"));
  EXPECT_THAT(Step({{.sequence = 1, .ids = {-1}}}), invalid("is outside [0, 259)"));
  EXPECT_THAT(Step({{.sequence = 1, .ids = Ids(97)}}), invalid("the limit is 96"));
  EXPECT_THAT(Step({{.sequence = 1, .ids = Ids(20), .choices = 9}}), invalid("max_choices"));
  std::vector<DrivenRow> rows;
  for (uint64_t i = 1; i <= 17; ++i) rows.push_back({.sequence = i, .ids = {1}});
  EXPECT_THAT(Step(rows), invalid("max_rows"));
  EXPECT_EQ(engine_->unallocated_blocks(), all_blocks_);
}

TEST_F(EngineLifecycleTest, RefusesToPassTheContextLimit) {
  TorchEngineOptions options = TinyEngineOptions("llama", WeightFormat::kInt8);
  options.context_limit = 50;
  const auto engine = MakeEngine(options);
  StepResult result;
  EngineDriver driver(engine.get());
  EXPECT_THAT(driver.Step({{.sequence = 1, .ids = Ids(50)}}, &result), IsOk());
  EXPECT_THAT(driver.Step({{.sequence = 1, .ids = Ids(1)}}, &result),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("context limit is 50")));
}

TEST_F(EngineLifecycleTest, PredictsOnceItHasSeenSteps) {
  EXPECT_EQ(engine_->Predict(1, 1), absl::ZeroDuration());
  ASSERT_THAT(Step({{.sequence = 1, .ids = Ids(4)}}), IsOk());
  const absl::Duration four = engine_->Predict(1, 4);
  EXPECT_GT(four, absl::ZeroDuration());
  // A prompt far longer than those seen is predicted in proportion, so that it is not taken for
  // stuck.
  EXPECT_GE(engine_->Predict(1, 400), 99 * four);
}

TEST(EngineCreationTest, RefusesABudgetBeyondTheMachine) {
  TorchEngineOptions options = TinyEngineOptions("llama", WeightFormat::kInt8);
  options.kv_bytes = int64_t{1} << 50;
  EXPECT_THAT(TorchEngine::Create(options),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("available")));
}

TEST(EngineCreationTest, RefusesABudgetBelowOneBlock) {
  TorchEngineOptions options = TinyEngineOptions("llama", WeightFormat::kInt8);
  options.kv_bytes = 1;
  EXPECT_THAT(TorchEngine::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("32 tokens")));
}

TEST(EngineCreationTest, HoldsMoreBlocksInEightBits) {
  TorchEngineOptions options = TinyEngineOptions("llama", WeightFormat::kInt8);
  const int64_t blocks = MakeEngine(options)->info().total_blocks;
  options.kv_format = KvFormat::kInt8;
  // Heads of the tiny models are so small that scales take much of the memory.
  EXPECT_GE(MakeEngine(options)->info().total_blocks, 2 * blocks);
}

TEST(EngineCreationTest, SaysWhichModelHasHeadsItCannotRun) {
  TinyModelSpec spec = TinySmall(Architecture::kQwen3, 1);
  spec.head_dim = 512;
  TorchEngineOptions options = TinyEngineOptions("llama", WeightFormat::kInt8);
  options.model_path = ::testing::TempDir() + "engine_wide_heads.gguf";
  ASSERT_THAT(WriteTinyModel(spec, TinyFormat::kGgufF32, options.model_path), IsOk());
  EXPECT_THAT(TorchEngine::Create(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("engine_wide_heads.gguf"), HasSubstr("512"))));
}

TEST(EngineCreationTest, ReportsProgressUpToTheEnd) {
  TorchEngineOptions options = TinyEngineOptions("qwen2", WeightFormat::kInt8);
  int64_t last = 0, total = 0;
  options.progress = [&](int64_t done, int64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  };
  MakeEngine(options);
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0);
}

}  // namespace
}  // namespace tokenrouter
