// always: the large model generates all tokens in one window until the end; the small one is not
// involved.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/parameter_rules.h"

namespace tokenrouter {

class AlwaysAlgorithm : public Algorithm {
 public:
  static constexpr const char* kName = "always";
  static absl::StatusOr<std::unique_ptr<const Algorithm>> Create(
      const AlgorithmParameters& parameters);

  std::string_view name() const override { return kName; }
  SignalRequest Signals(Role role) const override;
  Opening Open() const override;
  Decision Route(const RouteStep& step, RequestState* state) const override;
};

}  // namespace tokenrouter
