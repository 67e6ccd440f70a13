// The engines without weights, from the options of a worker: timed and fake.
// Errors: those of StepCurve::Parse and Tokenizer::Load.
#pragma once

#include "absl/status/statusor.h"
#include "libs/worker/engines/engine_factory.h"

namespace tokenrouter {

// KV of a token of the models they stand in for: turns kv_bytes into blocks.
inline constexpr int64_t kHashKvBytesPerToken = 12288;

// REQUIRES: options.engine is "timed" or "fake".
absl::StatusOr<WorkerEngine> MakeSyntheticEngine(Role role, const WorkerOptions& options);

}  // namespace tokenrouter
