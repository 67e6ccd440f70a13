// speculative: the small model drafts `window` tentative tokens, the large model checks them all in
// one pass and writes one more. A draft is kept as far as it equals what the large model chooses at
// each position. Since both models share the sampling noise of a position, equality is exact
// speculative decoding for sampled requests too: the output is that of the large model alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/parameter_rules.h"

namespace tokenrouter {

class SpeculativeAlgorithm : public Algorithm {
 public:
  static constexpr const char* kName = "speculative";
  static constexpr int32_t kDefaultWindow = 4;
  static constexpr int32_t kMaxWindow = 32;

  static absl::StatusOr<std::unique_ptr<const Algorithm>> Create(
      const AlgorithmParameters& parameters);
  explicit SpeculativeAlgorithm(int32_t window) : window_(window) {}

  std::string_view name() const override { return kName; }
  SignalRequest Signals(Role role) const override;
  Decision Route(const RouteStep& step, RequestState* state) const override;
  int32_t Receive(const Arrival& arrival, RequestState* state) const override;

 private:
  const int32_t window_;  // Tokens of a draft, 1..kMaxWindow.
};

}  // namespace tokenrouter
