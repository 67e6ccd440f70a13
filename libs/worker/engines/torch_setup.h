// The real engine, from the options of a worker. One of two files is built: with libtorch, or one
// that refuses.
// Errors: those of TorchEngine::Create and Tokenizer::Load; UNIMPLEMENTED when built without torch.
#pragma once

#include "absl/status/statusor.h"
#include "libs/worker/engines/engine_factory.h"

namespace tokenrouter {

absl::StatusOr<WorkerEngine> MakeTorchEngine(const WorkerOptions& options,
                                             const LoadProgress& progress);

}  // namespace tokenrouter
