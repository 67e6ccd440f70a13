#include "libs/torch_engine/cpu/kernels/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace tokenrouter {
namespace {

std::vector<float> Normal(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

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

// A sequence of random keys and values in shuffled blocks, seen through one kv head.
struct Sequence {
  int length = 0, group = 0, head_dim = 0, window = 0;
  std::vector<float> queries, keys, values, kv;
  std::vector<int32_t> blocks;
  AttentionItem Item(int first, int tokens, float* output) const {
    return {.queries = queries.data() + int64_t{first} * group * head_dim,
            .output = output,
            .token_stride = group * head_dim,
            .output_stride = group * head_dim,
            .tokens = tokens,
            .group = group,
            .head_dim = head_dim,
            .first = first,
            .window = window,
            .kv = kv.data(),
            .block_stride = KvTileFloats(head_dim),
            .blocks = blocks.data(),
            .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
  }
};

Sequence MakeSequence(int length, int group, int head_dim, uint32_t seed) {
  Sequence s;
  s.length = length;
  s.group = group;
  s.head_dim = head_dim;
  s.queries = Normal(length * group * head_dim, seed);
  s.keys = Normal(length * head_dim, seed + 1);
  s.values = Normal(length * head_dim, seed + 2);
  const int blocks = (length + kKvBlockTokens - 1) / kKvBlockTokens;
  s.blocks.resize(blocks + 2);
  std::iota(s.blocks.begin(), s.blocks.end(), 0);
  std::mt19937 generator(seed + 3);
  std::shuffle(s.blocks.begin(), s.blocks.end(), generator);
  s.kv.assign((blocks + 2) * KvTileFloats(head_dim), 7.0f);  // Stale contents must not show.
  for (int t = 0; t < length; ++t) {
    StoreKeyValue(s.keys.data() + t * head_dim, s.values.data() + t * head_dim, head_dim,
                  t % kKvBlockTokens,
                  s.kv.data() + s.blocks[t / kKvBlockTokens] * KvTileFloats(head_dim));
  }
  return s;
}

std::vector<double> Reference(const Sequence& s, int token, int head) {
  const float* query = s.queries.data() + (token * s.group + head) * s.head_dim;
  std::vector<double> output(s.head_dim), weights(token + 1);
  const int earliest = s.window == 0 ? 0 : std::max(0, token - s.window + 1);
  double total = 0;
  for (int t = earliest; t <= token; ++t) {
    const double dot =
        std::inner_product(query, query + s.head_dim, s.keys.data() + t * s.head_dim, 0.0);
    total += weights[t] = std::exp(dot / std::sqrt(static_cast<double>(s.head_dim)));
  }
  for (int t = earliest; t <= token; ++t) {
    for (int d = 0; d < s.head_dim; ++d) {
      output[d] += weights[t] / total * s.values[t * s.head_dim + d];
    }
  }
  return output;
}

TEST_P(KernelTableTest, AttendsLikeTheDefinition) {
  for (const auto& [length, group, head_dim, window] :
       std::vector<std::array<int, 4>>{{1, 1, 8, 0},
                                       {33, 7, 64, 0},
                                       {70, 3, 24, 0},
                                       {97, 6, 128, 0},
                                       {1, 1, 8, 1},
                                       {70, 3, 24, 1},
                                       {130, 2, 16, 32},
                                       {130, 5, 16, 45},
                                       {70, 2, 16, 70},
                                       {70, 2, 16, 200}}) {
    Sequence s = MakeSequence(length, group, head_dim, 11);
    s.window = window;
    std::vector<float> output(s.queries.size());
    GetParam()->attend(s.Item(0, length, output.data()));
    for (int token = 0; token < length; ++token) {
      for (int head = 0; head < group; ++head) {
        const std::vector<double> expected = Reference(s, token, head);
        for (int d = 0; d < head_dim; ++d) {
          ASSERT_NEAR(output[(token * group + head) * head_dim + d], expected[d], 2e-5);
        }
      }
    }
  }
}

TEST_P(KernelTableTest, GivesAQueryTheSameBitsHoweverTokensAreCut) {
  Sequence s = MakeSequence(150, 5, 64, 12);
  std::mt19937 generator(13);
  for (const int window : {0, 1, 31, 40, 100}) {
    s.window = window;
    std::vector<float> whole(s.queries.size()), cut(s.queries.size());
    GetParam()->attend(s.Item(0, s.length, whole.data()));
    for (int first = 0; first < s.length;) {
      const int tokens = std::min<int>(1 + generator() % 9, s.length - first);
      GetParam()->attend(s.Item(first, tokens, cut.data() + first * s.group * s.head_dim));
      first += tokens;
    }
    EXPECT_EQ(std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)), 0) << window;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, KernelTableTest,
                         ::testing::ValuesIn(UsableKernels().begin(), UsableKernels().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace tokenrouter
