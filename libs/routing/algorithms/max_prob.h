// max_prob: a token whose most likely id has a probability of at most `threshold` is written by the
// large model.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/parameter_rules.h"

namespace tokenrouter {

class MaxProbAlgorithm : public Algorithm {
 public:
  static constexpr const char* kName = "max_prob";
  static absl::StatusOr<std::unique_ptr<const Algorithm>> Create(
      const AlgorithmParameters& parameters);
  explicit MaxProbAlgorithm(double threshold) : threshold_(threshold) {}

  std::string_view name() const override { return kName; }
  SignalRequest Signals(Role role) const override;
  Decision Route(const RouteStep& step, RequestState* state) const override;

 private:
  const double threshold_;  // [0, 1].
};

}  // namespace tokenrouter
