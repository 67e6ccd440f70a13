#include "services/gateway/utf8.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

constexpr char kReplaced[] = "\xEF\xBF\xBD";

TEST(Utf8Test, KeepsWellFormedText) {
  const std::string text = "a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x98\x80";
  EXPECT_EQ(ToValidUtf8(text), text);
}

TEST(Utf8Test, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(ToValidUtf8("a\xFF!"), std::string("a") + kReplaced + "!");
  EXPECT_EQ(ToValidUtf8("\xC0\xAF"), std::string(kReplaced) + kReplaced) << "overlong";
  EXPECT_EQ(ToValidUtf8("\xED\xA0\x80"), std::string(kReplaced) + kReplaced + kReplaced)
      << "a surrogate";
}

TEST(Utf8Test, CutsBetweenCharacters) {
  EXPECT_EQ(Utf8Prefix("a\xE4\xBD\xA0", 3), "a");
  EXPECT_EQ(Utf8Prefix("a\xE4\xBD\xA0", 4), "a\xE4\xBD\xA0");
  EXPECT_EQ(Utf8Prefix("abc", 2), "ab");
}

}  // namespace
}  // namespace tokenrouter
