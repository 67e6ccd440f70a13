// margin: a token whose two most likely ids differ in probability by at most `threshold` is written
// by the large model.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/parameter_rules.h"

namespace tokenrouter {

class MarginAlgorithm : public Algorithm {
 public:
  static constexpr const char* kName = "margin";
  static absl::StatusOr<std::unique_ptr<const Algorithm>> Create(
      const AlgorithmParameters& parameters);
  explicit MarginAlgorithm(double threshold) : threshold_(threshold) {}

  std::string_view name() const override { return kName; }
  SignalRequest Signals(Role role) const override;
  Decision Route(const RouteStep& step, RequestState* state) const override;

 private:
  const double threshold_;  // [0, 1].
};

}  // namespace tokenrouter
