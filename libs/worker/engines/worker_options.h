// The options of a worker with their defaults, the same for both roles.
// Errors of Validate: INVALID_ARGUMENT naming flag, value and what is allowed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/config/settings.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct WorkerOptions {
  std::string scheduler = "127.0.0.1:8002";  // gRPC target.
  std::string admin;                         // host:port of /metrics, /livez, /readyz.
  std::string pair = "default";
  std::string device_key;  // Workers with the same key share one device; empty: dedicated.
  std::string log_level = "info";

  std::string engine = "torch";  // torch, timed or fake.
  std::string model;             // torch: a .gguf file or a Hugging Face folder.
  std::string model_name;        // Empty: what the model calls itself.
  std::string weight_format = "int8";
  std::string weight_cache = "off";  // Folder of packed weights, or off.
  int64_t weight_cache_bytes = int64_t{32} << 30;
  int32_t threads = 0;  // Of the torch engine; 0: one per core.
  std::string kv_format = "fp32";
  int64_t kv_bytes = int64_t{1} << 30;
  int32_t context_limit = 0;  // 0: what the model was made for.

  std::string tokenizer;  // timed, fake: whose fingerprint and ids to show; may be empty.
  std::string timed_curve = "fast";  // timed: libs/synthetic/step_curve.h.
  double timed_agreement = 0.9;      // timed, fake: share of positions at which the pair agrees.
  int64_t seed = 1;                  // timed, fake: the same on both sides of a pair.

  int32_t max_rows = 64;
  int32_t max_step_tokens = 512;
  int32_t max_step_ms = 250;
  int32_t max_sequences = 256;
  bool calibrate = true;     // Measure steps before attaching; engine=fake never does.
  bool prefix_cache = true;  // Closed requests keep their KV for others that start alike.
  int32_t drain_ms = 10000;  // For open requests after SIGTERM.
};

// Registers every option. The admin port differs by role.
void AddWorkerSettings(Role role, Settings* settings, WorkerOptions* options);

// Checks what the range of a single option cannot express.
absl::Status Validate(const WorkerOptions& options);

}  // namespace tokenrouter
