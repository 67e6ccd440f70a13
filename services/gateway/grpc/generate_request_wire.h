// Reads a gRPC GenerateRequest into what both front ends share. Pure and thread-safe.
// Errors: INVALID_ARGUMENT with the field as param (api_error.h).
#pragma once

#include "absl/status/statusor.h"
#include "proto/packages.h"
#include "services/gateway/generation/generation_request.h"
#include "tokenrouter/generation/v1/generation.pb.h"

namespace tokenrouter {

// The request id stays empty when the client gave none.
absl::StatusOr<GenerationRequest> FromWire(const api::GenerateRequest& request);

}  // namespace tokenrouter
