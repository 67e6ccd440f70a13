// Step times by batch size from a cost over (rows, new ids), for the formulas that know batch sizes
// only. A small row brings one id; a large row brings what was committed since its last visit, and
// its mean is what counts. Threads: pure.
#pragma once

#include <vector>

#include "libs/batching_model/simulator.h"

namespace tokenrouter {

// Ids per row of a large step in the long run: every committed token is computed exactly once.
double MeanIdsPerLargeRow(double r, double q);

// Entries 0..rows; entry 0 is 0.
std::vector<double> SmallStepTimes(const StepCost& cost, int rows);
std::vector<double> LargeStepTimes(const StepCost& cost, int rows, double r, double q);

}  // namespace tokenrouter
