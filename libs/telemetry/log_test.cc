#include "libs/telemetry/log.h"

#include <boost/json.hpp>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

TEST(LogTest, WritesOneJsonObjectWithTypedFields) {
  const std::string line =
      FormatLogLine("2026-01-01T00:00:00.000Z", LogLevel::kWarning, "scheduler", "worker_lost",
                    {{"worker", "w\"1\n"}, {"rows", 3}, {"seconds", 0.5}, {"drained", false}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find("\"seconds\":0.5"), std::string::npos);
  const boost::json::object parsed = boost::json::parse(line).as_object();
  EXPECT_EQ(parsed.at("level").as_string(), "warning");
  EXPECT_EQ(parsed.at("event").as_string(), "worker_lost");
  EXPECT_EQ(parsed.at("worker").as_string(), "w\"1\n");
  EXPECT_EQ(parsed.at("rows").as_int64(), 3);
  EXPECT_EQ(parsed.at("seconds").as_double(), 0.5);
  EXPECT_FALSE(parsed.at("drained").as_bool());
}

TEST(LogTest, StaysValidJsonForArbitraryBytes) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes.push_back(static_cast<char>(c));
  const std::string line = FormatLogLine("t", LogLevel::kInfo, "p", "e", {{"bytes", bytes}});
  boost::json::error_code error;
  boost::json::parse(line, error);
  EXPECT_FALSE(error) << error.message();
}

TEST(LogTest, RefusesAnUnknownLevel) {
  EXPECT_THAT(InitLog("p", "loud"),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("loud")));
  EXPECT_THAT(InitLog("p", "error"), IsOk());
}

}  // namespace
}  // namespace tokenrouter
