// entropy: a token whose distribution has an entropy of at least `threshold` nats (raw logits,
// temperature 1) is written by the large model.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/parameter_rules.h"

namespace tokenrouter {

class EntropyAlgorithm : public Algorithm {
 public:
  static constexpr const char* kName = "entropy";
  static constexpr double kDefaultThreshold = 0.45;  // Nats.
  static constexpr double kMaxThreshold = 100;       // Nats; far above ln of any vocabulary.

  static absl::StatusOr<std::unique_ptr<const Algorithm>> Create(
      const AlgorithmParameters& parameters);
  explicit EntropyAlgorithm(double threshold) : threshold_(threshold) {}

  std::string_view name() const override { return kName; }
  SignalRequest Signals(Role role) const override;
  Decision Route(const RouteStep& step, RequestState* state) const override;

 private:
  const double threshold_;  // Nats.
};

}  // namespace tokenrouter
