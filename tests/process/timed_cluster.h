// A cluster of the four real binaries on timed engines with a tiny tokenizer: what most process
// tests run on.
#pragma once

#include <string>
#include <vector>

#include "tests/support/cluster.h"

namespace tokenrouter {

// Curves are fast (milliseconds per step), both roles own a device. `folder` gets the tokenizer.
// Everything is routed unless the scheduler's flags say --service_mode: what a test asks for must
// not depend on what this machine is fast at.
absl::StatusOr<std::unique_ptr<Cluster>> StartTimedCluster(
    const std::string& folder, int small_workers = 1, int large_workers = 1,
    std::vector<std::string> scheduler_flags = {}, std::vector<std::string> gateway_flags = {});

}  // namespace tokenrouter
