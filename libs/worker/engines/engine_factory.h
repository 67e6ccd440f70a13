// How a worker creates its engine. The binaries pass the factory of the real engine in, so that
// this library and its tests need no torch.
// Errors: those of the engine, naming the option to change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/inference/engine.h"
#include "libs/tokens/token_types.h"
#include "libs/worker/engines/worker_options.h"

namespace tokenrouter {

struct WorkerEngine {
  std::unique_ptr<Engine> engine;
  std::string tokenizer_fingerprint;  // Empty: no tokenizer.
  std::vector<TokenId> eos_ids;
};

// Bytes of weights packed so far and in all.
using LoadProgress = std::function<void(int64_t done, int64_t total)>;
using EngineFactory =
    std::function<absl::StatusOr<WorkerEngine>(const WorkerOptions&, const LoadProgress&)>;

}  // namespace tokenrouter
