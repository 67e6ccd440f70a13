// Decode and prefill of our engine beside llama.cpp: same bits against same bits, the two
// alternating within every cell. A row per engine and cell, and one with the ratio of each cell.
// share_of_bandwidth is what a decode step must read (weights once, each row's KV) per second over
// the read bandwidth, the best that this run has measured (before each cell).
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "tests/bench/engine/engine_options.h"
#include "tests/bench/engine/engine_ours.h"
#include "tests/bench/engine/measured_engine.h"

namespace tokenrouter {

// Our engine with a model in a format and, unless the options want none, the peer.
struct EnginePair {
  std::unique_ptr<OurEngine> ours;
  std::unique_ptr<MeasuredEngine> peer;  // Null: none.
  std::vector<MeasuredEngine*> all() const;
  std::vector<pid_t> processes() const;
};
absl::StatusOr<EnginePair> StartPair(const EngineBenchOptions& options, const std::string& model,
                                     const std::string& format, const MeasuredSizes& sizes);
// Calls use(index in all()) once per round and engine, A B B A ...
absl::Status TakeTurns(int rounds, const EnginePair& pair,
                       const std::function<absl::Status(size_t)>& use);

absl::Status RunDecodePart(const EngineBenchOptions& options);

}  // namespace tokenrouter
