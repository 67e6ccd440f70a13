// The engine in fp32 against logits and greedy text of an independent numpy decoder
// (tools/golden/make_golden.py), and the int8 engine near it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <string>

#include "libs/status/status_matchers.h"
#include "tests/engine/golden_file.h"
#include "tests/engine/tiny_engine.h"
#include "tests/support/tiny_model.h"

namespace tokenrouter {
namespace {

// Largest difference allowed, relative to the largest logit of the position.
constexpr double kFp32Tolerance = 1e-4;
constexpr double kInt8Tolerance = 0.08;

std::string WriteModelOf(const boost::json::object& golden, const std::string& name) {
  const Architecture architecture =
      golden.at("architecture") == "llama" ? Architecture::kLlama : Architecture::kQwen2;
  const auto seed = golden.at("seed").to_number<uint64_t>();
  const TinyModelSpec spec =
      golden.at("size") == "small" ? TinySmall(architecture, seed) : TinyLarge(architecture, seed);
  const std::string path =
      ::testing::TempDir() + "/golden_" + std::to_string(getpid()) + "_" + name + ".gguf";
  const absl::Status status = WriteTinyModel(spec, TinyFormat::kGgufF32, path);
  EXPECT_THAT(status, IsOk());
  return path;
}

std::unique_ptr<TorchEngine> EngineOf(const boost::json::object& golden, const std::string& path,
                                      WeightFormat format) {
  TorchEngineOptions options;
  options.model_path = path;
  options.weight_format = format;
  options.kv_bytes = int64_t{64} << 20;
  options.usable_ids = golden.at("usable_ids").to_number<TokenId>();
  options.compute_nice = 0;
  return MakeEngine(options);
}

class GoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenTest, ComputesTheLogitsOfAnIndependentDecoder) {
  const boost::json::object golden = ReadGolden(GetParam());
  const std::string path = WriteModelOf(golden, GetParam());
  ExpectGoldenLogits(EngineOf(golden, path, WeightFormat::kFp32).get(), golden, kFp32Tolerance);
  ExpectGoldenLogits(EngineOf(golden, path, WeightFormat::kInt8).get(), golden, kInt8Tolerance);
}

TEST_P(GoldenTest, WritesTheSameGreedyText) {
  const boost::json::object golden = ReadGolden(GetParam());
  const std::string path = WriteModelOf(golden, GetParam());
  ExpectGoldenText(EngineOf(golden, path, WeightFormat::kFp32).get(), golden);
}

INSTANTIATE_TEST_SUITE_P(Tiny, GoldenTest,
                         ::testing::Values("tiny_llama_small", "tiny_llama_large",
                                           "tiny_qwen2_small", "tiny_qwen2_large"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tokenrouter
