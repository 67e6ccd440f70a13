#include "libs/text/stop_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

StopMatcher Make(std::vector<std::string> stops) {
  auto matcher = StopMatcher::Create(std::move(stops));
  EXPECT_THAT(matcher, IsOk());
  return *std::move(matcher);
}

TEST(StopMatcherTest, GivesOutTextAtOnceWithoutStopStrings) {
  StopMatcher matcher = Make({});
  EXPECT_EQ(matcher.Push("abc"), "abc");
  EXPECT_EQ(matcher.Flush(), "");
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcherTest, HoldsBackOnlyABeginningOfAStopString) {
  StopMatcher matcher = Make({"\n\nUser:"});
  EXPECT_EQ(matcher.Push("hello\n"), "hello");
  EXPECT_EQ(matcher.Push("\n"), "");
  EXPECT_EQ(matcher.Push("\nUs"), "\n");  // The last two line ends may still begin it.
  EXPECT_EQ(matcher.Push("ual"), "\n\nUsual");
  EXPECT_EQ(matcher.Push("x\n\nUser"), "x");
  EXPECT_EQ(matcher.held_bytes(), 6u);
  EXPECT_EQ(matcher.Flush(), "\n\nUser");
}

TEST(StopMatcherTest, FindsAStopStringAcrossChunks) {
  StopMatcher matcher = Make({"zzz", "END"});
  EXPECT_EQ(matcher.Push("abE"), "ab");
  EXPECT_EQ(matcher.Push("N"), "");
  EXPECT_FALSE(matcher.matched());
  EXPECT_EQ(matcher.Push("Dcd"), "");
  EXPECT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcherTest, TakesTheOneThatIsCompleteFirstThenTheLongest) {
  StopMatcher inner = Make({"abcd", "bc"});
  EXPECT_EQ(inner.Push("xabcd"), "xa");
  EXPECT_TRUE(inner.matched());
  StopMatcher suffix = Make({"bc", "abc"});
  EXPECT_EQ(suffix.Push("xabc"), "x");
  EXPECT_TRUE(suffix.matched());
}

TEST(StopMatcherTest, RefusesStopStringsOverTheLimits) {
  EXPECT_THAT(StopMatcher::Create({"a", ""}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("stop[1] has 0 bytes")));
  EXPECT_THAT(StopMatcher::Create(std::vector<std::string>(kMaxStopStrings + 1, "a")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("17 strings")));
  EXPECT_THAT(StopMatcher::Create({std::string(kMaxStopStringBytes + 1, 'a')}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1025 bytes")));
}

// Finds the end of the emitted text by looking at the whole text: first end, then first beginning.
std::optional<size_t> Naive(const std::string& text, const std::vector<std::string>& stops) {
  std::optional<std::pair<size_t, size_t>> best;  // End and beginning.
  for (const std::string& stop : stops) {
    const size_t begin = text.find(stop);
    if (begin == std::string::npos) continue;
    const std::pair<size_t, size_t> found(begin + stop.size(), begin);
    if (!best || found < *best) best = found;
  }
  if (!best) return std::nullopt;
  return best->second;
}

std::string RandomText(std::mt19937& random, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += "ab"[random() % 8 == 0];
  return text;
}

TEST(StopMatcherTest, AgreesWithAFindOnTheWholeTextUnderRandomChunks) {
  const uint32_t seed = 77;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    size_t longest = 0;
    for (uint32_t i = 0, n = 1 + random() % 4; i < n; ++i) {
      stops.push_back(RandomText(random, 1 + random() % 7));
      longest = std::max(longest, stops.back().size());
    }
    const std::string text = RandomText(random, random() % 60);
    StopMatcher matcher = Make(stops);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(random() % 5, text.size() - at);
      out += matcher.Push(text.substr(at, size));
      at += size;
      ASSERT_LT(matcher.held_bytes(), longest);
    }
    out += matcher.Flush();
    const std::optional<size_t> expected = Naive(text, stops);
    ASSERT_EQ(matcher.matched(), expected.has_value()) << text;
    ASSERT_EQ(out, text.substr(0, expected.value_or(text.size())));
  }
}

TEST(StopMatcherTest, StaysLinearOnRepetitiveText) {
  StopMatcher matcher = Make({std::string(kMaxStopStringBytes - 1, 'a') + "b"});
  std::string out;
  const std::string text(2000000, 'a');
  for (size_t at = 0; at < text.size(); at += 100) out += matcher.Push(text.substr(at, 100));
  EXPECT_EQ(matcher.held_bytes(), kMaxStopStringBytes - 1);
  EXPECT_EQ(out.size() + matcher.Flush().size(), text.size());
}

}  // namespace
}  // namespace tokenrouter
