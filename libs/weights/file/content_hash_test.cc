#include "libs/weights/file/content_hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace tokenrouter {
namespace {

constexpr size_t kSampled = kContentHashSamples * kContentHashSampleBytes;

std::string Sampled(const std::vector<std::byte>& bytes) {
  ContentHash hash;
  hash.AddSamples(bytes);
  return hash.Hex();
}

TEST(ContentHashTest, IsStableAcrossBuilds) {
  const std::vector<std::byte> bytes = {std::byte{'a'}, std::byte{'b'}};
  ContentHash hash;
  hash.Add(bytes);
  EXPECT_EQ(hash.Hex(), "9c6001d328a94690");
}

TEST(ContentHashTest, TellsPartsApart) {
  const std::vector<std::byte> one(1);
  const std::vector<std::byte> two(2);
  ContentHash first;
  first.Add(one);
  first.Add(two);
  ContentHash second;
  second.Add(two);
  second.Add(one);
  EXPECT_NE(first.Hex(), second.Hex());
}

TEST(ContentHashTest, SeesEveryByteOfSmallPartsAndTheEndsOfLargeOnes) {
  std::vector<std::byte> small(1000);
  const std::string before = Sampled(small);
  small[500] = std::byte{1};
  EXPECT_NE(Sampled(small), before);

  std::vector<std::byte> large(10 * kSampled);
  const std::string zeros = Sampled(large);
  for (const size_t at : {size_t{0}, large.size() - 1}) {
    large[at] = std::byte{1};
    EXPECT_NE(Sampled(large), zeros) << at;
    large[at] = std::byte{0};
  }
  large.push_back(std::byte{0});
  EXPECT_NE(Sampled(large), zeros) << "another size";
}

}  // namespace
}  // namespace tokenrouter
