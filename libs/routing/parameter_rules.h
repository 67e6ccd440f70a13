// The numeric parameters that an algorithm takes, as data, and the one check of them. Pure.
// Errors: INVALID_ARGUMENT naming the algorithm, the parameter, its value and the allowed range:
// for a parameter that the algorithm does not have, one that is missing and has no default, one
// out of range, a fraction where a whole number is meant, and NaN.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

using AlgorithmParameters = std::map<std::string, double>;

struct ParameterRule {
  const char* name;
  double low;                                     // Smallest allowed value.
  double high;                                    // Largest allowed value.
  std::optional<double> fallback = std::nullopt;  // Absent: the parameter must be given.
  bool whole = false;                             // Only whole numbers.
};

// The values in the order of `rules`.
absl::StatusOr<std::vector<double>> ReadParameters(const char* algorithm,
                                                   std::initializer_list<ParameterRule> rules,
                                                   const AlgorithmParameters& given);

}  // namespace tokenrouter
