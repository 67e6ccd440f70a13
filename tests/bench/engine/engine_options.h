// The options of `engine_bench`. Threads: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokenrouter {

struct EngineBenchOptions {
  std::vector<std::string> models;   // Paths.
  std::vector<std::string> formats;  // Of our engine; each has its peer format.
  std::string kv_format = "fp32";    // Of our engine.
  std::string peer;                  // The program llama_cpp_peer; empty: ours runs alone.
  std::vector<int32_t> rows = {1, 2, 4, 8, 16, 32};
  std::vector<int32_t> contexts = {64, 2048};
  int32_t rounds = 3;        // Of each cell, the engines alternating.
  int32_t steps = 24;        // Decode steps of a round.
  int32_t prompt = 512;      // Ids of the measured prefill.
  int32_t threads = 2;       // Of each engine.
  std::string small, large;  // Parts on real processes.
};

}  // namespace tokenrouter
