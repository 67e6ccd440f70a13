#include "libs/worker/engines/synthetic_engine_setup.h"

#include "libs/status/status_matchers.h"
#include "libs/text/tiny_vocabulary.h"
#include "libs/text/tokenizer.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

WorkerOptions Timed() {
  WorkerOptions options;
  options.engine = "timed";
  options.timed_curve = "instant";
  return options;
}

TEST(SyntheticEngineSetupTest, KvBytesBecomeBlocks) {
  WorkerOptions options = Timed();
  options.kv_bytes = 16 * kHashKvBytesPerToken * 10;
  TR_ASSERT_OK_AND_ASSIGN(const WorkerEngine made, MakeSyntheticEngine(Role::kSmall, options));
  EXPECT_EQ(made.engine->info().total_blocks, 10);
  EXPECT_EQ(made.tokenizer_fingerprint, "");
}

TEST(SyntheticEngineSetupTest, StandsForATokenizer) {
  const std::string folder = ::testing::TempDir() + "synthetic_engine_setup";
  WriteTinyFolder(MakeTinyVocabulary(), folder);
  WorkerOptions options = Timed();
  options.tokenizer = folder;
  TR_ASSERT_OK_AND_ASSIGN(const WorkerEngine made, MakeSyntheticEngine(Role::kLarge, options));
  EXPECT_EQ(made.tokenizer_fingerprint.size(), 16u);
  TR_ASSERT_OK_AND_ASSIGN(const auto tokenizer, Tokenizer::Load(folder));
  EXPECT_EQ(made.engine->info().usable_ids, tokenizer->usable_ids());
  EXPECT_FALSE(made.eos_ids.empty());
}

TEST(SyntheticEngineSetupTest, NamesABadCurveOrTokenizer) {
  WorkerOptions options = Timed();
  options.timed_curve = "warp";
  EXPECT_THAT(MakeSyntheticEngine(Role::kSmall, options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("warp")));
  options.engine = "fake";
  options.tokenizer = "/nowhere";
  EXPECT_THAT(MakeSyntheticEngine(Role::kSmall, options), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace tokenrouter
