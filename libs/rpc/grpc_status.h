// The one mapping between absl::Status and grpc::Status. Codes are equal by number; messages are
// capped, since they travel in a header.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace tokenrouter {

inline constexpr size_t kMaxStatusMessageBytes = 1024;

grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace tokenrouter
