// Names of batching policies as flags, metrics and JSON rows spell them: model, greedy, static,
// fixed_wait, longest_queue. Threads: pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

absl::string_view PolicyName(BatchingPolicy::Kind kind);
// INVALID_ARGUMENT naming what is allowed.
absl::StatusOr<BatchingPolicy::Kind> ParsePolicyKind(absl::string_view name);
// All of them, the model first.
const std::vector<BatchingPolicy::Kind>& AllPolicyKinds();
// Name and parameters, for people: "model beta=0.7", "static 1,4".
std::string DescribePolicy(const BatchingPolicy& policy, bool shared_device);

}  // namespace tokenrouter
