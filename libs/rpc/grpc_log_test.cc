#include "libs/rpc/grpc_log.h"

#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

namespace tokenrouter {
namespace {

boost::json::object LineOf(const std::string& message) {
  SendGrpcLogHere();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // As grpc_init() does.
  ::testing::internal::CaptureStderr();
  gpr_log("src/core/server.cc", 7, GPR_LOG_SEVERITY_ERROR, "%s", message.c_str());
  return boost::json::parse(::testing::internal::GetCapturedStderr()).as_object();
}

TEST(GrpcLogTest, ItsErrorsAreLinesOfOurs) {
  const boost::json::object line = LineOf("address \"x\" taken");
  EXPECT_EQ(line.at("level"), "warning");
  EXPECT_EQ(line.at("event"), "grpc");
  EXPECT_EQ(line.at("at"), "server.cc:7");
  EXPECT_EQ(line.at("message"), "address \"x\" taken");
}

TEST(GrpcLogTest, CutsLongMessages) {
  EXPECT_EQ(LineOf(std::string(5000, 'x')).at("message").as_string().size(), kMaxGrpcMessage);
}

}  // namespace
}  // namespace tokenrouter
