#include "libs/torch_engine/cpu/kernels/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "libs/torch_engine/cpu/normal_values.h"

namespace tokenrouter {
namespace {

class KernelTableTest : public ::testing::TestWithParam<const KernelTable*> {};

TEST_P(KernelTableTest, NormsRowsOfAnyLength) {
  for (const int count : {1, 7, 16, 63, 576, 900}) {
    const std::vector<float> x = Normal(count, 1), weight = Normal(count, 2);
    std::vector<float> out(count);
    GetParam()->rms_norm(x.data(), weight.data(), 1e-5f, count, out.data());
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    for (int i = 0; i < count; ++i) {
      EXPECT_NEAR(out[i], x[i] / std::sqrt(squares / count + 1e-5) * weight[i], 1e-5);
    }
  }
}

TEST_P(KernelTableTest, GatesWithSwishWhateverTheSize) {
  std::vector<float> gate = Normal(37, 3), up = Normal(37, 4), out(37);
  gate[0] = 200.0f;
  gate[1] = -200.0f;
  gate[20] = 0.0f;
  GetParam()->swiglu(gate.data(), up.data(), 37, out.data());
  for (int i = 0; i < 37; ++i) {
    const double expected = gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i];
    EXPECT_NEAR(out[i], expected, 1e-6 + 1e-6 * std::fabs(expected)) << i;
  }
}

TEST_P(KernelTableTest, RotatesChannelsOfTheTwoHalves) {
  const std::vector<float> before = Normal(2 * 20, 5);
  std::vector<float> head = before, cosines(20), sines(20);
  for (int i = 0; i < 20; ++i) {
    cosines[i] = std::cos(0.3f * i);
    sines[i] = std::sin(0.3f * i);
  }
  GetParam()->rotate(head.data(), cosines.data(), sines.data(), 20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_NEAR(head[i], before[i] * cosines[i] - before[i + 20] * sines[i], 1e-6);
    EXPECT_NEAR(head[i + 20], before[i + 20] * cosines[i] + before[i] * sines[i], 1e-6);
  }
}

TEST_P(KernelTableTest, QuantizesARowWithinAStepAndKeepsZeroExact) {
  for (const int count : {1, 5, 16, 100}) {
    std::vector<float> x = Normal(count, 6);
    if (count > 1) x[count - 2] = 0.0f;
    std::vector<int8_t> out(count);
    const RowQuantization row = GetParam()->quantize(x.data(), count, 0, out.data());
    for (int i = 0; i < count; ++i) {
      const float back = row.scale * static_cast<float>(out[i] - row.zero_point);
      EXPECT_NEAR(back, x[i], row.scale * 1.01f) << i << " of " << count;
      if (x[i] == 0.0f) {
        EXPECT_EQ(back, 0.0f);
      }
    }
  }
}

TEST_P(KernelTableTest, QuantizesARowOfZeros) {
  const std::vector<float> x(20, 0.0f);
  std::vector<int8_t> out(20, 1);
  EXPECT_EQ(GetParam()->quantize(x.data(), 20, 0, out.data()).zero_point, 0);
  EXPECT_EQ(out, std::vector<int8_t>(20, 0));
  GetParam()->quantize(x.data(), 20, 0x80, out.data());
  EXPECT_EQ(out, std::vector<int8_t>(20, -128));
}

INSTANTIATE_TEST_SUITE_P(Tables, KernelTableTest,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace tokenrouter
