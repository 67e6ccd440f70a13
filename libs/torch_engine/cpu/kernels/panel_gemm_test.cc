#include "libs/torch_engine/cpu/kernels/panel_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace tokenrouter {

const PanelGemm& EvexPanelGemm();  // panel_gemm_evex_test.cc

namespace {

constexpr int64_t kMaxRows = 21;
constexpr int64_t kStride = 40;

struct Panel {
  std::vector<std::byte> memory;  // With extra space for alignment.
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

// All tables but the scalar one that this processor runs.
std::vector<const PanelGemm*> Tables() {
  std::vector<const PanelGemm*> tables(UsablePanelGemms().begin(), UsablePanelGemms().end());
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
    tables.push_back(&EvexPanelGemm());
  }
  return tables;
}

class PanelGemmTest : public ::testing::TestWithParam<std::tuple<const PanelGemm*, bool>> {
 protected:
  static bool int4() { return std::get<1>(GetParam()); }
  // Outputs of all rows; those that must not be written keep 7.
  std::vector<float> Apply(const PanelGemm& gemm, std::byte* panel, int64_t rows, int64_t inputs,
                           int64_t outputs) const {
    std::vector<float> output(kMaxRows * kStride, 7.0f);
    const auto kernel = int4() ? gemm.int4 : gemm.int8;
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
  void ExpectEqualBits(std::byte* panel, int64_t rows, int64_t inputs, int64_t outputs) const {
    const auto fast = Apply(*std::get<0>(GetParam()), panel, rows, inputs, outputs);
    const auto exact = Apply(ScalarPanelGemm(), panel, rows, inputs, outputs);
    ASSERT_EQ(std::memcmp(fast.data(), exact.data(), fast.size() * sizeof(float)), 0)
        << rows << " rows, " << inputs << " inputs, " << outputs << " outputs";
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
  std::mt19937 generator(int4() ? 1 : 2);
  std::vector<int64_t> sizes = {32, 64, 96, 256, 288, 896, 4864};
  if (!int4()) sizes.insert(sizes.end(), {4, 28, 100, 252, 260, 1000});
  for (const int64_t inputs : sizes) {
    MakeInputs(inputs, &generator);
    Panel panel = int4() ? RandomInt4(inputs, &generator) : RandomInt8(inputs, &generator);
    for (int64_t rows = 1; rows <= (inputs > 100 ? 9 : kMaxRows); ++rows) {
      const int64_t outputs = rows % 2 == 0 ? kPanelOutputs : 1 + generator() % kPanelOutputs;
      ExpectEqualBits(panel.aligned(), rows, inputs, outputs);
    }
  }
}

TEST_P(PanelGemmTest, HoldsTheLargestSums) {
  std::mt19937 generator(3);
  const int64_t inputs = kMaxPanelInputs;
  MakeInputs(inputs, &generator);
  Panel panel = int4() ? RandomInt4(inputs, &generator) : RandomInt8(inputs, &generator);
  std::byte* const weights =
      panel.aligned() + (int4() ? sizeof(Int4PanelHead) : sizeof(Int8PanelHead));
  // The lowest and the highest weight, as bytes and as pairs.
  for (const int byte : {0x80, 0x7F, 0x88, 0x77, 0xFF, 0x00}) {
    if (int4()) {
      auto* const blocks = reinterpret_cast<Int4PanelBlock*>(weights);
      for (int64_t b = 0; b < inputs / kInt4Block; ++b) {
        std::memset(blocks[b].pairs, byte, sizeof(blocks[b].pairs));
      }
    } else {
      std::memset(weights, byte, kPanelOutputs * inputs);
    }
    for (const int input : {0, 255}) {
      std::fill(input_.begin(), input_.end(), static_cast<uint8_t>(input));
      ExpectEqualBits(panel.aligned(), 5, inputs, kPanelOutputs);
    }
  }
}

TEST_P(PanelGemmTest, TakesEveryScaleThatPackingWrites) {
  if (!int4()) GTEST_SKIP() << "scales of int8 are plain floats";
  constexpr int64_t kInputs = 64;
  std::mt19937 generator(4);
  MakeInputs(kInputs, &generator);
  Panel panel = RandomInt4(kInputs, &generator);
  auto* const blocks = reinterpret_cast<Int4PanelBlock*>(panel.aligned() + sizeof(Int4PanelHead));
  // As bfloat16: both zeros, the least and the largest normal number that packing makes of them,
  // subnormal ones, 1.
  for (const uint16_t scale : {0x0000, 0x8000, 0x0080, 0x7800, 0xF800, 0x0001, 0x807F, 0x3F80}) {
    for (int64_t b = 0; b < kInputs / kInt4Block; ++b) {
      std::fill(std::begin(blocks[b].scales), std::end(blocks[b].scales), scale);
    }
    ExpectEqualBits(panel.aligned(), 7, kInputs, kPanelOutputs);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, PanelGemmTest,
                         ::testing::Combine(::testing::ValuesIn(Tables()), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)->name) +
                                  (std::get<1>(info.param) ? "_int4" : "_int8");
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PanelGemmTest);

}  // namespace
}  // namespace tokenrouter
