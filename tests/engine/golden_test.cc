// The engine in fp32 against logits and greedy text of an independent numpy decoder
// (tools/golden/make_golden.py), and the int8 engine near it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <string>

#include "libs/status/status_matchers.h"
#include "tests/engine/golden_file.h"
#include "tests/engine/tiny_engine.h"
#include "tests/support/tiny_family.h"
#include "tests/support/tiny_model.h"

namespace tokenrouter {
namespace {

// Largest difference allowed, relative to the largest logit of the position.
constexpr double kFp32Tolerance = 1e-4;
constexpr double kInt8Tolerance = 0.08;
// Of logits in int8: single activations may fall to either side of a rounding.
constexpr double kInt8GoldenTolerance = 0.05;

std::string WriteModelOf(const boost::json::object& golden, const std::string& name,
                         TinyFormat format) {
  const auto text = [&](const char* field) {
    return boost::json::value_to<std::string>(golden.at(field));
  };
  const auto spec =
      TinyFamily(text("family"), text("size"), golden.at("seed").to_number<uint64_t>());
  EXPECT_THAT(spec, IsOk());
  const std::string path = ::testing::TempDir() + "/golden_" + std::to_string(getpid()) + "_" +
                           name + (format == TinyFormat::kGgufF32 ? ".gguf" : "");
  EXPECT_THAT(WriteTinyModel(*spec, format, path), IsOk());
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
  const std::string path = WriteModelOf(golden, GetParam(), TinyFormat::kGgufF32);
  ExpectGoldenLogits(EngineOf(golden, path, WeightFormat::kFp32).get(), golden, kFp32Tolerance);
}

// The output matrix of a tied tiny model is its embedding table, whose two confidence channels are
// outliers of every row: int8 is rough there, as no published table is. Its file has what int8
// makes of it.
TEST_P(GoldenTest, StaysNearThemInInt8) {
  const boost::json::object golden = ReadGolden(GetParam());
  const std::string path = WriteModelOf(golden, GetParam(), TinyFormat::kGgufF32);
  const bool has_int8 = golden.contains("int8_logits");
  ExpectGoldenLogits(EngineOf(golden, path, WeightFormat::kInt8).get(), golden,
                     has_int8 ? kInt8GoldenTolerance : kInt8Tolerance,
                     has_int8 ? "int8_logits" : "logits");
}

TEST_P(GoldenTest, ComputesTheSameFromAHuggingFaceFolder) {
  const boost::json::object golden = ReadGolden(GetParam());
  const std::string path = WriteModelOf(golden, GetParam(), TinyFormat::kFolderF32);
  ExpectGoldenLogits(EngineOf(golden, path, WeightFormat::kFp32).get(), golden, kFp32Tolerance);
}

TEST_P(GoldenTest, WritesTheSameGreedyText) {
  const boost::json::object golden = ReadGolden(GetParam());
  const std::string path = WriteModelOf(golden, GetParam(), TinyFormat::kGgufF32);
  ExpectGoldenText(EngineOf(golden, path, WeightFormat::kFp32).get(), golden);
}

INSTANTIATE_TEST_SUITE_P(Tiny, GoldenTest,
                         ::testing::Values("tiny_llama_small", "tiny_llama_large",
                                           "tiny_qwen2_small", "tiny_qwen2_large",
                                           "tiny_qwen3_small", "tiny_qwen3_large",
                                           "tiny_qwen3_tied_small", "tiny_mistral_small",
                                           "tiny_mistral_large", "tiny_llama3_small",
                                           "tiny_yarn_small", "tiny_yarn_stated_small"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tokenrouter
