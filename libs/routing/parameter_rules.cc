#include "libs/routing/parameter_rules.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

std::string Range(const ParameterRule& rule) {
  return absl::StrCat(rule.whole ? "whole numbers in [" : "[", rule.low, ", ", rule.high, "]");
}

absl::StatusOr<double> ReadOne(const char* algorithm, const ParameterRule& rule,
                               const AlgorithmParameters& given) {
  const auto found = given.find(rule.name);
  if (found == given.end()) {
    if (rule.fallback.has_value()) return *rule.fallback;
    return absl::InvalidArgumentError(absl::StrCat("routing algorithm ", algorithm,
                                                   " needs the parameter ", rule.name,
                                                   "; allowed: ", Range(rule)));
  }
  const double value = found->second;
  const bool inside = value >= rule.low && value <= rule.high;  // False for NaN.
  if (inside && (!rule.whole || value == std::floor(value))) return value;
  return absl::InvalidArgumentError(absl::StrCat("routing algorithm ", algorithm, ": ", rule.name,
                                                 " is ", value, "; allowed: ", Range(rule)));
}

}  // namespace

absl::StatusOr<std::vector<double>> ReadParameters(const char* algorithm,
                                                   std::initializer_list<ParameterRule> rules,
                                                   const AlgorithmParameters& given) {
  for (const auto& [name, value] : given) {
    bool known = false;
    std::string names;
    for (const ParameterRule& rule : rules) {
      known = known || name == rule.name;
      absl::StrAppend(&names, names.empty() ? "" : ", ", rule.name, " in ", Range(rule));
    }
    if (known) continue;
    return absl::InvalidArgumentError(absl::StrCat("routing algorithm ", algorithm,
                                                   " has no parameter ", name, " (given: ", value,
                                                   "); allowed: ", names.empty() ? "none" : names));
  }
  std::vector<double> values;
  for (const ParameterRule& rule : rules) {
    TR_ASSIGN_OR_RETURN(const double value, ReadOne(algorithm, rule, given));
    values.push_back(value);
  }
  return values;
}

}  // namespace tokenrouter
