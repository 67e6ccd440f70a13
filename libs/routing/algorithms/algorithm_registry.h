// The algorithms by name. Create is the only way to an Algorithm, so that every parameter has been
// checked before a request exists.
// Ownership: the caller owns what Create returns. Threads: pure, thread-safe.
// Errors: INVALID_ARGUMENT for an unknown name (listing the known ones) and as ReadParameters says.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/parameter_rules.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<const Algorithm>> CreateAlgorithm(
    std::string_view name, const AlgorithmParameters& parameters);

// Every known name, sorted.
std::vector<std::string> AlgorithmNames();

}  // namespace tokenrouter
