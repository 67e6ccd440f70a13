// Attention and the writing of tiles, in both KV formats.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/cpu/normal_values.h"

namespace tokenrouter {
namespace {

// Rounds each row of `width` floats to 8 bits with one scale.
std::vector<float> Quantized(std::vector<float> values, int width) {
  for (size_t row = 0; row < values.size(); row += width) {
    float most = 0.0f;
    for (int i = 0; i < width; ++i) most = std::max(most, std::fabs(values[row + i]));
    const double scale = most / 127.0;
    for (int i = 0; i < width; ++i) {
      values[row + i] = static_cast<float>(scale * std::nearbyint(values[row + i] / scale));
    }
  }
  return values;
}

// A sequence of random keys and values in shuffled blocks, seen through one kv head.
struct Sequence {
  int length = 0, group = 0, head_dim = 0, window = 0;
  KvFormat format = KvFormat::kFp32;
  std::vector<float> queries, keys, values;  // Keys and values as they are stored.
  std::vector<std::byte> kv;
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
            .block_stride = KvTileBytes(format, head_dim),
            .blocks = blocks.data(),
            .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
  }
};

Sequence MakeSequence(const KvKernels& kernels, KvFormat format, std::array<int, 3> sizes,
                      uint32_t seed) {
  Sequence s;
  s.format = format;
  s.length = sizes[0];
  s.group = sizes[1];
  s.head_dim = sizes[2];
  s.queries = Normal(s.length * s.group * s.head_dim, seed);
  s.keys = Normal(s.length * s.head_dim, seed + 1);
  s.values = Normal(s.length * s.head_dim, seed + 2);
  const int blocks = (s.length + kKvBlockTokens - 1) / kKvBlockTokens;
  s.blocks.resize(blocks + 2);
  std::iota(s.blocks.begin(), s.blocks.end(), 0);
  std::mt19937 generator(seed + 3);
  std::shuffle(s.blocks.begin(), s.blocks.end(), generator);
  const int64_t tile_bytes = KvTileBytes(format, s.head_dim);
  s.kv.resize((blocks + 2) * tile_bytes);
  // Stale contents must not show.
  const std::vector<float> stale(s.head_dim, std::numeric_limits<float>::max());
  for (int slot = 0; slot < (blocks + 2) * kKvBlockTokens; ++slot) {
    kernels.store(stale.data(), stale.data(), s.head_dim, slot % kKvBlockTokens,
                  s.kv.data() + slot / kKvBlockTokens * tile_bytes);
  }
  for (int block = 0; format == KvFormat::kInt8 && block < blocks + 2; ++block) {
    const KvTile<int8_t, std::byte> tile(s.kv.data() + block * tile_bytes, s.head_dim);
    for (float* const scales : {tile.key_scales, tile.value_scales}) {
      std::fill_n(scales, kKvBlockTokens, std::numeric_limits<float>::infinity());
    }
  }
  for (int t = 0; t < s.length; ++t) {
    kernels.store(s.keys.data() + t * s.head_dim, s.values.data() + t * s.head_dim, s.head_dim,
                  t % kKvBlockTokens, s.kv.data() + s.blocks[t / kKvBlockTokens] * tile_bytes);
  }
  if (format == KvFormat::kInt8) {
    s.keys = Quantized(s.keys, s.head_dim);
    s.values = Quantized(s.values, s.head_dim);
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

class AttentionTest : public ::testing::TestWithParam<std::tuple<const KernelTable*, KvFormat>> {
 protected:
  KvFormat Format() const { return std::get<1>(GetParam()); }
  const KvKernels& Kernels() const { return std::get<0>(GetParam())->kv(Format()); }
  Sequence Make(int length, int group, int head_dim, uint32_t seed) const {
    return MakeSequence(Kernels(), Format(), {length, group, head_dim}, seed);
  }
};

TEST_P(AttentionTest, AttendsLikeTheDefinition) {
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
    Sequence s = Make(length, group, head_dim, 11);
    s.window = window;
    std::vector<float> output(s.queries.size());
    Kernels().attend(s.Item(0, length, output.data()));
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

TEST_P(AttentionTest, GivesAQueryTheSameBitsHoweverTokensAreCut) {
  Sequence s = Make(150, 5, 64, 12);
  std::mt19937 generator(13);
  for (const int window : {0, 1, 31, 40, 100}) {
    s.window = window;
    std::vector<float> whole(s.queries.size()), cut(s.queries.size());
    Kernels().attend(s.Item(0, s.length, whole.data()));
    for (int first = 0; first < s.length;) {
      const int tokens = std::min<int>(1 + generator() % 9, s.length - first);
      Kernels().attend(s.Item(first, tokens, cut.data() + first * s.group * s.head_dim));
      first += tokens;
    }
    EXPECT_EQ(std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)), 0) << window;
  }
}

TEST_P(AttentionTest, JoinsPartsLikeTheDefinition) {
  Sequence s = Make(2 * kAttentionPartTokens + 40, 2, 16, 15);
  for (const int window : {0, 100, kAttentionPartTokens, kAttentionPartTokens + 77}) {
    s.window = window;
    std::vector<float> output(s.queries.size());
    Kernels().attend(s.Item(0, s.length, output.data()));
    for (int token = 0; token < s.length; token += 31) {
      const std::vector<double> expected = Reference(s, token, 1);
      for (int d = 0; d < s.head_dim; ++d) {
        ASSERT_NEAR(output[(token * s.group + 1) * s.head_dim + d], expected[d], 2e-5) << token;
      }
    }
  }
}

TEST_P(AttentionTest, GivesAQueryTheSameBitsPartByPart) {
  Sequence s = Make(3 * kAttentionPartTokens + 9, 3, 24, 16);
  std::mt19937 generator(17);
  for (const int window : {0, 1, 90, kAttentionPartTokens + 1, 2 * kAttentionPartTokens}) {
    s.window = window;
    std::vector<float> whole(s.queries.size());
    Kernels().attend(s.Item(0, s.length, whole.data()));
    for (int trial = 0; trial < 60; ++trial) {
      const int tokens = 1 + static_cast<int>(generator() % 16);
      const int first = static_cast<int>(generator() % (s.length - tokens));
      std::vector<float> output(tokens * s.group * s.head_dim);
      const AttentionItem item = s.Item(first, tokens, output.data());
      const int parts = item.parts();
      const int64_t floats = tokens * s.group * PartialFloats(s.head_dim);
      std::vector<float> partials(parts * floats);
      for (int part = parts - 1; part >= 0; --part) {
        AttentionItem one = item;
        one.partial = partials.data() + part * floats;
        one.part = item.first_part() + part;
        Kernels().attend(one);
      }
      std::get<0>(GetParam())->join(item, partials.data(), parts);
      ASSERT_EQ(std::memcmp(output.data(), whole.data() + first * s.group * s.head_dim,
                            output.size() * sizeof(float)),
                0)
          << "window " << window << ", tokens " << first << " + " << tokens;
    }
  }
}

TEST_P(AttentionTest, WritesTheBytesOfTheScalarKernels) {
  for (const int head_dim : {2, 8, 24, 64, 100, 128}) {
    const int64_t bytes = KvTileBytes(Format(), head_dim);
    std::vector<std::byte> tile(bytes), expected(bytes);
    for (int slot = 0; slot < kKvBlockTokens; ++slot) {
      std::vector<float> key = Normal(head_dim, slot), value = Normal(head_dim, slot + 100);
      if (slot == 3) key.assign(head_dim, 0.0f);
      if (slot == 4) value.assign(head_dim, 1e-40f);
      if (slot == 5) value[head_dim / 2] = -1e30f;
      Kernels().store(key.data(), value.data(), head_dim, slot, tile.data());
      ScalarKernels().kv(Format()).store(key.data(), value.data(), head_dim, slot, expected.data());
    }
    EXPECT_EQ(tile, expected) << head_dim;
    if (Format() != KvFormat::kInt8) continue;
    const KvTile<int8_t, std::byte> scaled(tile.data(), head_dim);
    EXPECT_EQ(scaled.key_scales[3], 0.0f);
    EXPECT_EQ(scaled.value_scales[4], 0.0f) << "too small for the inverse of a scale";
  }
}

TEST_P(AttentionTest, AgreesWithTheScalarKernels) {
  const Sequence s = Make(200, 6, 128, 14);
  std::vector<float> output(s.queries.size()), expected(s.queries.size());
  Kernels().attend(s.Item(0, s.length, output.data()));
  ScalarKernels().kv(Format()).attend(s.Item(0, s.length, expected.data()));
  for (size_t i = 0; i < output.size(); ++i) ASSERT_NEAR(output[i], expected[i], 5e-6) << i;
}

TEST(KvFormatTest, EightBitsTakeLittleMoreThanAQuarter) {
  EXPECT_EQ(KvTileBytes(KvFormat::kFp32, 128), 2 * 32 * 128 * 4);
  EXPECT_EQ(KvTileBytes(KvFormat::kInt8, 128), 2 * 32 * (128 + 4));
}

TEST(KvFormatTest, NamesAreThoseThatAreParsed) {
  for (const KvFormat format : {KvFormat::kFp32, KvFormat::kInt8}) {
    EXPECT_EQ(*ParseKvFormat(KvFormatName(format)), format);
  }
  EXPECT_EQ(ParseKvFormat("int4").status().message(), "KV format is \"int4\", allowed: fp32, int8");
}

INSTANTIATE_TEST_SUITE_P(Tables, AttentionTest,
                         ::testing::Combine(::testing::ValuesIn(UsableKernels().begin(),
                                                                UsableKernels().end()),
                                            ::testing::Values(KvFormat::kFp32, KvFormat::kInt8)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)->name) + "_" +
                                  std::string(KvFormatName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace tokenrouter
