// Real engines on tiny random models, for tests that need no downloaded weights.
#pragma once

#include <memory>
#include <string>

#include "libs/torch_engine/torch_engine.h"

namespace tokenrouter {

// Path of a tiny model of a family (tests/support/tiny_family.h), written to the test's temporary
// folder at its first use.
std::string TinyModelPath(const std::string& family);

// Options for it: 64 blocks of KV, steps of up to 16 rows and 96 ids, one thread more than one.
TorchEngineOptions TinyEngineOptions(const std::string& family, WeightFormat format,
                                     KvFormat kv_format = KvFormat::kFp32);

// Ends the process when the engine cannot be made.
std::unique_ptr<TorchEngine> MakeEngine(const TorchEngineOptions& options);

}  // namespace tokenrouter
