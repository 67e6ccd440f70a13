#include "libs/rpc/grpc_status.h"

#include <string>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

TEST(GrpcStatusTest, KeepsEveryCodeAndMessage) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    const grpc::Status mapped = ToGrpcStatus(status);
    EXPECT_EQ(static_cast<int>(mapped.error_code()), code);
    EXPECT_EQ(FromGrpcStatus(mapped), status);
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_THAT(FromGrpcStatus(grpc::Status::OK), IsOk());
}

TEST(GrpcStatusTest, CapsTheMessage) {
  const grpc::Status mapped = ToGrpcStatus(absl::InternalError(std::string(5000, 'x')));
  EXPECT_EQ(mapped.error_message().size(), kMaxStatusMessageBytes);
}

}  // namespace
}  // namespace tokenrouter
