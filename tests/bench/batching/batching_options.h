// The options of `batching_bench`: the loads of all its parts. Threads: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/simulate/load_grid.h"

namespace tokenrouter {

struct BatchingBenchOptions {
  LoadGrid grid;
  // timed: policies beside the model; "best": the baseline that simulates best on the load.
  std::vector<std::string> against;
  int32_t seconds = 5;        // Measured time of one burst on real processes.
  int32_t learn_seconds = 5;  // Unmeasured load on each cluster before its first burst.
  int32_t rounds = 4;         // Bursts of each policy, interleaved.
  std::string rows, plot;     // plot_*: files to read and to write.
};

}  // namespace tokenrouter
