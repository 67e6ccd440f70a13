// random: each token goes to the large model with probability p, drawn by the request's seed, its
// choice and the position, so that the pattern is the same on every run. It is the baseline that
// any rule must beat at an equal share of the large model.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/parameter_rules.h"

namespace tokenrouter {

class RandomAlgorithm : public Algorithm {
 public:
  static constexpr const char* kName = "random";
  static absl::StatusOr<std::unique_ptr<const Algorithm>> Create(
      const AlgorithmParameters& parameters);
  explicit RandomAlgorithm(double p) : p_(p) {}

  std::string_view name() const override { return kName; }
  SignalRequest Signals(Role role) const override;
  Decision Route(const RouteStep& step, RequestState* state) const override;

 private:
  const double p_;  // [0, 1].
};

}  // namespace tokenrouter
