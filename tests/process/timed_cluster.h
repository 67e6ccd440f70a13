// A cluster of the four real binaries on timed engines with a tiny tokenizer, which most process
// tests use.
#pragma once

#include <string>
#include <vector>

#include "tests/support/cluster.h"

namespace tokenrouter {

// Curves are fast (milliseconds per step), both roles have dedicated devices. `folder` gets the
// tokenizer. Everything is routed unless the scheduler's flags set --service_mode, since a test
// must not depend on the relative speeds of this machine.
absl::StatusOr<std::unique_ptr<Cluster>> StartTimedCluster(
    const std::string& folder, int small_workers = 1, int large_workers = 1,
    std::vector<std::string> scheduler_flags = {}, std::vector<std::string> gateway_flags = {});

}  // namespace tokenrouter
