#include "services/gateway/text/utf8.h"

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
  EXPECT_EQ(ToValidUtf8("\xE4\xBD"), kReplaced) << "a character that was cut";
}

TEST(Utf8Test, CutsBetweenCharacters) {
  EXPECT_EQ(Utf8Prefix("a\xE4\xBD\xA0", 3), "a");
  EXPECT_EQ(Utf8Prefix("a\xE4\xBD\xA0", 4), "a\xE4\xBD\xA0");
  EXPECT_EQ(Utf8Prefix("abc", 2), "ab");
}

}  // namespace
}  // namespace tokenrouter
