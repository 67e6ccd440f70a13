// Real weights, where this machine has them (label `model`; skipped otherwise).
#include "tests/support/real_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "libs/status/status_matchers.h"
#include "libs/weights/gguf/gguf_file.h"
#include "tests/engine/engine_driver.h"
#include "tests/engine/golden_file.h"
#include "tests/engine/tiny_engine.h"

namespace tokenrouter {
namespace {

constexpr double kFp32Tolerance = 1e-4;

TorchEngineOptions Options(const std::string& path, WeightFormat format) {
  TorchEngineOptions options;
  options.model_path = path;
  options.weight_format = format;
  options.kv_bytes = int64_t{128} << 20;
  options.compute_nice = 0;
  return options;
}

// Ids of byte-level BPE pieces as the file spells them ("Ġ" is a space, "Ċ" a line feed).
std::vector<TokenId> Pieces(std::span<const std::string_view> vocabulary,
                            const std::vector<std::string>& pieces) {
  std::vector<TokenId> ids;
  for (const std::string& piece : pieces) {
    const auto found = std::find(vocabulary.begin(), vocabulary.end(), piece);
    EXPECT_NE(found, vocabulary.end()) << piece;
    ids.push_back(static_cast<TokenId>(found - vocabulary.begin()));
  }
  return ids;
}

TEST(RealModelTest, SmolLmComputesTheLogitsOfAnIndependentDecoder) {
  const std::string path = RealModelPath(kSmolLmFile);
  if (access(path.c_str(), R_OK) != 0) GTEST_SKIP() << "no " << path;
  const boost::json::object golden = ReadGolden("smollm2_135m");
  const auto engine = MakeEngine(Options(path, WeightFormat::kFp32));
  ExpectGoldenLogits(engine.get(), golden, kFp32Tolerance);
  ExpectGoldenText(engine.get(), golden);
}

TEST(RealModelTest, QwenCompletesAFunctionSensibly) {
  const std::string path = RealModelPath(kSmallModelFile);
  if (access(path.c_str(), R_OK) != 0) GTEST_SKIP() << "no " << path;
  TR_ASSERT_OK_AND_ASSIGN(const auto file, GgufFile::Open(path));
  TR_ASSERT_OK_AND_ASSIGN(const auto vocabulary, file->GetStrings("tokenizer.ggml.tokens"));
  const std::vector<TokenId> prompt =
      Pieces(vocabulary, {"def", "Ġadd", "(a", ",", "Ġb", "):", "Ċ", "ĠĠĠ", "Ġreturn"});
  const auto engine = MakeEngine(Options(path, WeightFormat::kInt8));
  std::string text;
  for (const TokenId id : EngineDriver(engine.get()).Generate(1, prompt, 3, 4)) {
    text += vocabulary[id];
  }
  EXPECT_EQ(text, "ĠaĠ+Ġb");
}

TEST(RealModelTest, QwenGivesTheSameBitsInEveryBatch) {
  const std::string path = RealModelPath(kSmallModelFile);
  if (access(path.c_str(), R_OK) != 0) GTEST_SKIP() << "no " << path;
  const auto engine = MakeEngine(Options(path, WeightFormat::kInt8));
  EngineDriver driver(engine.get());
  std::vector<TokenId> ids(70);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(1000 + 37 * i);
  StepResult whole, batched;
  ASSERT_THAT(driver.Step({{.sequence = 1, .ids = ids, .choices = 2}}, &whole), IsOk());
  const auto cut = ids.begin() + 41;
  ASSERT_THAT(driver.Step({{.sequence = 2, .ids = {ids.begin(), cut}},
                           {.sequence = 3, .ids = {5, 6, 7}, .choices = 1}},
                          &batched),
              IsOk());
  ASSERT_THAT(driver.Step({{.sequence = 3, .ids = {8}, .choices = 1},
                           {.sequence = 2, .ids = {cut, ids.end()}, .choices = 2}},
                          &batched),
              IsOk());
  for (int choice = 0; choice < 2; ++choice) {
    EXPECT_EQ(Fingerprint(batched.choices[1][choice]), Fingerprint(whole.choices[0][choice]));
  }
}

}  // namespace
}  // namespace tokenrouter
