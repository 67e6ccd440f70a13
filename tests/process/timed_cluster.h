// A cluster of the four real binaries on timed engines with a tiny tokenizer: what most process
// tests run on.
#pragma once

#include <string>
#include <vector>

#include "tests/support/cluster.h"

namespace tokenrouter {

// Curves are fast (milliseconds per step), both roles own a device. `folder` gets the tokenizer.
absl::StatusOr<std::unique_ptr<Cluster>> StartTimedCluster(
    const std::string& folder, int small_workers = 1, int large_workers = 1,
    std::vector<std::string> scheduler_flags = {}, std::vector<std::string> gateway_flags = {});

}  // namespace tokenrouter
