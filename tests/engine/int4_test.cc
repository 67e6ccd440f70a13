// The int4 engine against the fp32 one on models whose layers hold only weights that int4 can
// express, so that only the rounding of activations and of the output matrix remains. Random
// weights would be no check, since rounding them to 4 bits changes a tiny model beyond recognition.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "libs/status/status_matchers.h"
#include "libs/torch_engine/cpu/weight_quantization.h"
#include "libs/weights/model_source.h"
#include "tests/engine/engine_driver.h"
#include "tests/engine/tiny_engine.h"

namespace tokenrouter {
namespace {

// Largest difference allowed, relative to the largest logit: that of int8 (golden_test.cc).
constexpr double kTolerance = 0.08;
constexpr int kPromptIds = 80;
constexpr int kIdLimit = 259;

void RoundToInt4(std::span<float> weights) {
  int8_t rounded[kInt4Block];
  for (size_t first = 0; first < weights.size(); first += kInt4Block) {
    const auto block = weights.subspan(first).first<kInt4Block>();
    const float scale = FloatOfBfloat16(QuantizeInt4Block(block, ScaleSign::kPositive, rounded));
    for (int64_t i = 0; i < kInt4Block; ++i) block[i] = scale * rounded[i];
  }
}

// Rounds the matrices of all layers in a file of fp32 weights.
void RoundFile(const std::string& path) {
  const auto source = ModelSource::Open(path);
  ASSERT_THAT(source, IsOk());
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (const TensorRole role : RolesOf((*source)->description())) {
    if (!IsLayerRole(role)) continue;
    for (int64_t layer = 0; layer < (*source)->description().layers; ++layer) {
      const auto tensor = (*source)->Tensor(role, layer);
      ASSERT_THAT(tensor, IsOk());
      if (tensor->shape.size() < 2) continue;
      ASSERT_EQ(tensor->type, TensorType::kF32);
      std::vector<float> weights(tensor->bytes.size() / sizeof(float));
      std::memcpy(weights.data(), tensor->bytes.data(), tensor->bytes.size());
      RoundToInt4(weights);
      file.seekp(tensor->bytes.data() - (*source)->gguf()->bytes().data());
      file.write(reinterpret_cast<const char*>(weights.data()),
                 static_cast<std::streamsize>(tensor->bytes.size()));
    }
  }
}

std::map<TokenId, float> Logits(Engine* engine, const std::vector<TokenId>& prompt) {
  EngineDriver driver(engine);
  driver.set_recorded_logits(engine->info().usable_ids);
  StepResult result;
  EXPECT_THAT(driver.Step({{.sequence = 1, .ids = prompt, .choices = 1}}, &result), IsOk());
  engine->Release({1});
  const auto& logits = result.choices[0][0].signals.top_logits;
  return {logits.begin(), logits.end()};
}

// The family and whether our own kernel runs where the processor has it, else XNNPACK's.
class Int4Test : public ::testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(Int4Test, ComputesTheLogitsOfFp32OnWeightsThatItHolds) {
  const auto& [family, own_kernel] = GetParam();
  TorchEngineOptions options = TinyEngineOptions(family, WeightFormat::kInt4);
  const std::string rounded = options.model_path + ".rounded.gguf";
  std::ofstream(rounded, std::ios::binary)
      << std::ifstream(options.model_path, std::ios::binary).rdbuf();
  RoundFile(rounded);
  options.model_path = rounded;
  if (!own_kernel) options.kernels = UsableKernels().front();
  const auto int4 = MakeEngine(options);
  options.weight_format = WeightFormat::kFp32;
  const auto fp32 = MakeEngine(options);
  std::vector<TokenId> prompt(kPromptIds);
  for (int i = 0; i < kPromptIds; ++i) prompt[i] = i * 37 % kIdLimit;
  const auto expected = Logits(fp32.get(), prompt), computed = Logits(int4.get(), prompt);
  double largest = 0, error = 0;
  for (const auto& [id, logit] : expected) {
    largest = std::max<double>(largest, std::fabs(logit));
    error = std::max<double>(error, std::fabs(logit - computed.at(id)));
  }
  EXPECT_LT(error / largest, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Families, Int4Test,
                         ::testing::Combine(::testing::Values("llama", "qwen3", "mistral"),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "_chosen" : "_xnn");
                         });

}  // namespace
}  // namespace tokenrouter
