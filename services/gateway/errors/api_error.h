// The error that a client of the gateway receives. An error travels as an
// absl::Status whose payloads carry the OpenAI fields (param, code, retry time, extra numbers); it
// becomes JSON or a gRPC status at the edge. Ownership and threads: plain values. Units:
// retry_after is a duration, zero means no hint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tokenrouter {

struct ApiError {
  int http_status = 500;
  std::string message;
  std::string type;   // e.g. invalid_request_error.
  std::string param;  // Name of the offending field; empty: null in JSON.
  std::string code;   // Machine-readable, e.g. model_not_found; empty: null in JSON.
  absl::Duration retry_after = absl::ZeroDuration();
  std::vector<std::pair<std::string, int64_t>> numbers;  // Extra members, e.g. prompt_tokens.
};

// INVALID_ARGUMENT about one field of a request.
absl::Status InvalidField(std::string_view param, std::string_view message,
                          std::string_view code = {});
absl::Status WithParam(absl::Status status, std::string_view param);
absl::Status WithCode(absl::Status status, std::string_view code);
absl::Status WithRetryAfter(absl::Status status, absl::Duration retry_after);
absl::Status WithNumber(absl::Status status, std::string_view name, int64_t value);
absl::Status WithHttpStatus(absl::Status status, int http_status);

// REQUIRES: !status.ok().
ApiError ToApiError(const absl::Status& status);

}  // namespace tokenrouter
