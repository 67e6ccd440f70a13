// The best that any batching policy can reach on a load, where it can be computed: the exact solver
// on two devices, the best threshold on a shared one, both corrected from rows to committed tokens.
// They assume steps that last their mean. Threads: pure.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

// Committed tokens per second; nullopt for more requests than can be solved (16 on two devices; 512
// on a shared one, 64 for q < 1) or with a hop, which the solvers do not know.
absl::StatusOr<std::optional<double>> OptimalCommittedRate(const SimulationSetup& setup);

}  // namespace tokenrouter
