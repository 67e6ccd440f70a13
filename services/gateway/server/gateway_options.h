// The options of a gateway: flags, environment (TOKENROUTER_NAME) and the section
// [gateway] of the config file. Plain values with their defaults. Errors: INVALID_ARGUMENT naming
// the setting, its value and what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/gateway/generation/request_intake.h"

namespace tokenrouter {

struct GatewayOptions {
  std::string http = "127.0.0.1:8000";
  std::string grpc = "127.0.0.1:8001";
  std::string scheduler = "127.0.0.1:8002";
  std::string admin = "127.0.0.1:9100";
  std::string tokenizer;  // A .gguf file or a Hugging Face folder; required.
  std::string log_level = "info";
  std::string gateway_id;  // Empty: drawn.
  IntakeOptions intake;
  int32_t max_connections = 1024;
  int32_t max_requests = 1024;
  int32_t http_threads = 2;
  int64_t max_body_bytes = 4 << 20;
  int64_t max_body_budget_bytes = 256 << 20;
  absl::Duration idle_timeout = absl::Seconds(75);
  absl::Duration write_timeout = absl::Seconds(60);
  absl::Duration ping_interval = absl::Seconds(15);
  absl::Duration drain = absl::Seconds(15);  // The launcher kills after 20 s.
};

// No value when --help was asked for and printed.
absl::StatusOr<std::optional<GatewayOptions>> ParseGatewayOptions(int argc,
                                                                  const char* const* argv);

}  // namespace tokenrouter
