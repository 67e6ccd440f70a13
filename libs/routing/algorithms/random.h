// random: each token that the small model would write goes to the large model with probability p,
// drawn by the request's seed, its choice and the position, so that the pattern is the same on
// every run; the large model then writes `window` tokens. With windows of one token the baseline
// that any rule must beat at an equal share of the large model.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/parameter_rules.h"

namespace tokenrouter {

class RandomAlgorithm : public Algorithm {
 public:
  static constexpr const char* kName = "random";
  static constexpr int32_t kMaxWindow = 64;

  static absl::StatusOr<std::unique_ptr<const Algorithm>> Create(
      const AlgorithmParameters& parameters);
  RandomAlgorithm(double p, int32_t window) : p_(p), window_(window) {}

  std::string_view name() const override { return kName; }
  SignalRequest Signals(Role role) const override;
  Decision Route(const RouteStep& step, RequestState* state) const override;

 private:
  const double p_;        // [0, 1].
  const int32_t window_;  // Tokens of the large model at a time, 1..kMaxWindow.
};

}  // namespace tokenrouter
