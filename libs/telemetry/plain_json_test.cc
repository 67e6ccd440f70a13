#include "libs/telemetry/plain_json.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <limits>

namespace tokenrouter {
namespace {

namespace json = boost::json;

TEST(PlainJsonTest, WritesNumbersAsPeopleDo) {
  EXPECT_EQ(PlainJson(0.25), "0.25");
  EXPECT_EQ(PlainJson(-3.5), "-3.5");
  EXPECT_EQ(PlainJson(3.614220378), "3.614220378");
  EXPECT_EQ(PlainJson(0.0), "0.0");
  EXPECT_EQ(PlainJson(15.0), "15.0");
  EXPECT_EQ(PlainJson(1e-9), "1e-09");
  EXPECT_EQ(PlainJson(int64_t{7}), "7");
}

TEST(PlainJsonTest, ReadsBackAsTheSameValue) {
  const json::value value = {{"text", "a\"b\\\n\x01 \xC3\xA9"},
                             {"k\"ey", {1, -2.5, 1e30, true, nullptr}},
                             {"empty", {{"object", json::object()}, {"array", json::array()}}},
                             {"big", std::numeric_limits<uint64_t>::max()}};
  EXPECT_EQ(json::parse(PlainJson(value)), value);
}

TEST(PlainJsonTest, NumbersThatJsonLacksAreNull) {
  EXPECT_EQ(PlainJson(json::array{std::numeric_limits<double>::quiet_NaN(),
                                  std::numeric_limits<double>::infinity()}),
            "[null,null]");
}

TEST(PlainJsonTest, FloatsKeepTheirOwnDigits) {
  EXPECT_EQ(PlainJson(ShortestDecimal(0.1f)), "0.1");
  EXPECT_EQ(PlainJson(ShortestDecimal(-5.385685f)), "-5.385685");
  EXPECT_EQ(static_cast<float>(ShortestDecimal(0.56322414f)), 0.56322414f);
}

}  // namespace
}  // namespace tokenrouter
