// Draws simulated cells as an SVG: multiples of large-only service over the number of requests, one
// line per policy and routing share. Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "tools/simulate/cell.h"

namespace tokenrouter {

// REQUIRES: at least one cell.
std::string PlotSvg(const std::vector<Cell>& cells, const SimulateOptions& options);

}  // namespace tokenrouter
