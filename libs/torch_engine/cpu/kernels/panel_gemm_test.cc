#include "libs/torch_engine/cpu/kernels/panel_gemm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace tokenrouter {
namespace {

constexpr int64_t kMaxRows = 21;
constexpr int64_t kStride = 40;

struct Panel {
  std::vector<std::byte> memory;  // With room to align.
  std::byte* aligned() {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (64 - address % 64) % 64;
  }
};

void FillRandom(std::byte* out, size_t bytes, std::mt19937* generator) {
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>((*generator)());
}

float RandomFloat(std::mt19937* generator) {
  return std::normal_distribution<float>(0.0f, 0.1f)(*generator);
}

Panel RandomInt8(int64_t inputs, std::mt19937* generator) {
  Panel panel;
  const size_t weights = kPanelOutputs * inputs;
  panel.memory.resize(sizeof(Int8PanelHead) + weights + 64);
  auto* const head = reinterpret_cast<Int8PanelHead*>(panel.aligned());
  FillRandom(reinterpret_cast<std::byte*>(head + 1), weights, generator);
  for (int o = 0; o < kPanelOutputs; ++o) {
    head->sums[o] = static_cast<int32_t>((*generator)() % 20000) - 10000;
    head->scales[o] = RandomFloat(generator);
  }
  return panel;
}

// Every nibble, and scales as large weights have them.
Panel RandomInt4(int64_t inputs, std::mt19937* generator) {
  Panel panel;
  const auto blocks = static_cast<size_t>(inputs / kInt4Block);
  panel.memory.resize(sizeof(Int4PanelHead) + blocks * sizeof(Int4PanelBlock) + 64);
  auto* const head = reinterpret_cast<Int4PanelHead*>(panel.aligned());
  for (float& sum : head->sums) sum = RandomFloat(generator);
  auto* const block = reinterpret_cast<Int4PanelBlock*>(head + 1);
  for (size_t b = 0; b < blocks; ++b) {
    FillRandom(reinterpret_cast<std::byte*>(block[b].pairs), sizeof(block[b].pairs), generator);
    for (uint16_t& scale : block[b].scales) {
      const float value = RandomFloat(generator);
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      scale = static_cast<uint16_t>(bits >> 16);
    }
  }
  return panel;
}

class PanelGemmTest : public ::testing::TestWithParam<bool> {
 protected:
  // Outputs of all rows; those that must not be written keep 7.
  std::vector<float> Apply(const PanelGemm& gemm, std::byte* panel, int64_t rows, int64_t inputs,
                           int64_t outputs) const {
    std::vector<float> output(kMaxRows * kStride, 7.0f);
    const auto kernel = GetParam() ? gemm.int4 : gemm.int8;
    kernel({.input = input_.data(),
            .quantization = quantization_.data(),
            .panel = panel,
            .bias = bias_.data(),
            .output = output.data(),
            .rows = rows,
            .inputs = inputs,
            .outputs = outputs,
            .output_stride = kStride});
    return output;
  }
  void MakeInputs(int64_t inputs, std::mt19937* generator) {
    input_.resize(kMaxRows * inputs);
    FillRandom(reinterpret_cast<std::byte*>(input_.data()), input_.size(), generator);
    quantization_.clear();
    for (int64_t r = 0; r < kMaxRows; ++r) {
      quantization_.push_back({.zero_point = static_cast<int32_t>((*generator)() % 256) - 128,
                               .scale = RandomFloat(generator)});
    }
    bias_.clear();
    for (int o = 0; o < kPanelOutputs; ++o) bias_.push_back(RandomFloat(generator));
  }

  std::vector<uint8_t> input_;
  std::vector<RowQuantization> quantization_;
  std::vector<float> bias_;
};

TEST_P(PanelGemmTest, GivesTheBitsOfTheScalarReference) {
  const PanelGemm* const gemm = UsablePanelGemm();
  if (gemm == nullptr) GTEST_SKIP() << "no dot-product instructions";
  std::mt19937 generator(GetParam() ? 1 : 2);
  for (const int64_t inputs : {32, 64, 96, 896, 4864}) {
    MakeInputs(inputs, &generator);
    Panel panel = GetParam() ? RandomInt4(inputs, &generator) : RandomInt8(inputs, &generator);
    for (int64_t rows = 1; rows <= (inputs > 100 ? 9 : kMaxRows); ++rows) {
      const int64_t outputs = rows % 2 == 0 ? kPanelOutputs : 1 + generator() % kPanelOutputs;
      const auto fast = Apply(*gemm, panel.aligned(), rows, inputs, outputs);
      const auto exact = Apply(ScalarPanelGemm(), panel.aligned(), rows, inputs, outputs);
      ASSERT_EQ(std::memcmp(fast.data(), exact.data(), fast.size() * sizeof(float)), 0)
          << rows << " rows, " << inputs << " inputs, " << outputs << " outputs";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, PanelGemmTest, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "int4" : "int8"; });

}  // namespace
}  // namespace tokenrouter
