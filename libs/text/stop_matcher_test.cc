#include "libs/text/stop_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

StopMatcher Make(std::vector<std::string> stops, bool include_stop = false) {
  auto matcher = StopMatcher::Create(std::move(stops), include_stop);
  EXPECT_THAT(matcher, IsOk());
  return *std::move(matcher);
}

TEST(StopMatcherTest, GivesOutTextAtOnceWithoutStopStrings) {
  StopMatcher matcher = Make({});
  EXPECT_EQ(matcher.Push("abc"), "abc");
  EXPECT_EQ(matcher.Flush(), "");
  EXPECT_FALSE(matcher.match().has_value());
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

TEST(StopMatcherTest, ReportsTheMatchAcrossChunks) {
  StopMatcher matcher = Make({"zzz", "END"});
  EXPECT_EQ(matcher.Push("abE", 1), "ab");
  EXPECT_EQ(matcher.Push("N", 2), "");
  EXPECT_EQ(matcher.Push("Dcd", 3), "");
  ASSERT_TRUE(matcher.match().has_value());
  EXPECT_EQ(matcher.match()->stop_index, 1u);
  EXPECT_EQ(matcher.match()->begin, 2u);
  EXPECT_EQ(matcher.match()->end, 5u);
  EXPECT_EQ(matcher.match()->text_end, 2u);
  EXPECT_EQ(matcher.match()->text_tokens, 1);
  EXPECT_EQ(matcher.match()->tokens, 3);
  EXPECT_EQ(matcher.Push("more", 4), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcherTest, GivesOutTheStopStringWhenAsked) {
  StopMatcher matcher = Make({"END"}, /*include_stop=*/true);
  EXPECT_EQ(matcher.Push("abEN", 1), "ab");
  EXPECT_EQ(matcher.Push("Dcd", 2), "END");
  EXPECT_EQ(matcher.match()->text_end, 5u);
  EXPECT_EQ(matcher.match()->text_tokens, 2);
}

TEST(StopMatcherTest, CountsNoTokensForAnEmptyText) {
  StopMatcher matcher = Make({"ab"});
  EXPECT_EQ(matcher.Push("a", 1), "");
  EXPECT_EQ(matcher.Push("b", 2), "");
  EXPECT_EQ(matcher.match()->text_tokens, 0);
  EXPECT_EQ(matcher.match()->tokens, 2);
}

TEST(StopMatcherTest, TakesTheOneThatIsCompleteFirstThenTheLongest) {
  StopMatcher inner = Make({"abcd", "bc"});
  EXPECT_EQ(inner.Push("xabcd"), "xa");
  EXPECT_EQ(inner.match()->stop_index, 1u);
  StopMatcher suffix = Make({"bc", "abc"});
  EXPECT_EQ(suffix.Push("xabc"), "x");
  EXPECT_EQ(suffix.match()->stop_index, 1u);
}

TEST(StopMatcherTest, RefusesStopStringsOverTheLimits) {
  EXPECT_THAT(StopMatcher::Create({"a", ""}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
  EXPECT_THAT(StopMatcher::Create(std::vector<std::string>(kMaxStopStrings + 1, "a")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit")));
  EXPECT_THAT(StopMatcher::Create({std::string(kMaxStopStringBytes + 1, 'a')}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("limit")));
}

// The same by looking at the whole text: first end, then first beginning.
std::optional<StopMatch> Naive(const std::string& text, const std::vector<std::string>& stops) {
  std::optional<StopMatch> best;
  for (size_t i = 0; i < stops.size(); ++i) {
    const size_t begin = text.find(stops[i]);
    if (begin == std::string::npos) continue;
    const size_t end = begin + stops[i].size();
    if (!best || end < best->end || (end == best->end && begin < best->begin)) {
      best = StopMatch{i, begin, end};
    }
  }
  return best;
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
    const bool include = random() % 2 == 0;
    StopMatcher matcher = Make(stops, include);
    std::string out;
    std::vector<size_t> ends = {0};  // Text bytes after each token.
    for (size_t at = 0; at < text.size();) {
      const size_t size = std::min<size_t>(random() % 5, text.size() - at);
      ends.push_back(at += size);
      out += matcher.Push(text.substr(at - size, size), static_cast<int64_t>(ends.size() - 1));
      ASSERT_LT(matcher.held_bytes(), longest);
    }
    out += matcher.Flush();
    const auto expected = Naive(text, stops);
    ASSERT_EQ(matcher.match().has_value(), expected.has_value()) << text;
    if (!expected) {
      ASSERT_EQ(out, text);
      continue;
    }
    const StopMatch& match = *matcher.match();
    ASSERT_EQ(match.begin, expected->begin);
    ASSERT_EQ(match.end, expected->end);
    ASSERT_EQ(stops[match.stop_index], stops[expected->stop_index]);
    ASSERT_EQ(match.text_end, include ? match.end : match.begin);
    ASSERT_EQ(out, text.substr(0, match.text_end));
    const auto reaches = [&ends](size_t end) {
      return std::lower_bound(ends.begin(), ends.end(), end) - ends.begin();
    };
    ASSERT_EQ(match.text_tokens, reaches(match.text_end)) << text;
    ASSERT_EQ(match.tokens, reaches(match.end)) << text;
  }
}

TEST(StopMatcherTest, StaysLinearOnRepetitiveText) {
  StopMatcher matcher = Make({std::string(kMaxStopStringBytes - 1, 'a') + "b"});
  std::string out;
  const std::string text(2000000, 'a');
  for (size_t at = 0; at < text.size(); at += 100) out += matcher.Push(text.substr(at, 100), at);
  EXPECT_EQ(matcher.held_bytes(), kMaxStopStringBytes - 1);
  EXPECT_EQ(out.size() + matcher.Flush().size(), text.size());
}

}  // namespace
}  // namespace tokenrouter
