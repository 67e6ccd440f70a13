#include "libs/batching_model/prompt_worth.h"

#include <algorithm>
#include <cmath>

namespace tokenrouter {
namespace {

// Routed service pays this much more for the prompt than large-only service does.
double RoutedExtraMs(const PromptCost& prompt) {
  return PromptMs(prompt, ServiceMode::kRouted) - PromptMs(prompt, ServiceMode::kLargeAlone);
}

}  // namespace

double PromptMs(const PromptCost& prompt, ServiceMode mode) {
  if (mode == ServiceMode::kLargeAlone) return prompt.large_prefill_ms;
  const double ever_routed = 1.0 - std::pow(1.0 - prompt.r, prompt.expected_tokens);
  const double large_ms = ever_routed * prompt.large_prefill_ms;
  return prompt.shared_device ? prompt.small_prefill_ms + large_ms
                              : std::max(prompt.small_prefill_ms, large_ms);
}

ModePrediction WithPrompts(const ModePrediction& prediction, const PromptCost& mean) {
  ModePrediction whole = prediction;
  if (mean.expected_tokens <= 0) return whole;
  const auto with_prompt = [&](double per_s, ServiceMode mode) {
    return 1000.0 / (1000.0 / per_s + PromptMs(mean, mode) / mean.expected_tokens);
  };
  whole.routed_per_s = with_prompt(prediction.routed_per_s, ServiceMode::kRouted);
  whole.large_alone_per_s = with_prompt(prediction.large_alone_per_s, ServiceMode::kLargeAlone);
  return whole;
}

double RoutingSavesMs(const ModePrediction& prediction, const PromptCost& prompt,
                      const PromptCost& mean) {
  double per_token = 1000.0 / prediction.large_alone_per_s - 1000.0 / prediction.routed_per_s;
  if (mean.expected_tokens > 0) per_token += RoutedExtraMs(mean) / mean.expected_tokens;
  return prompt.expected_tokens * per_token - RoutedExtraMs(prompt);
}

}  // namespace tokenrouter
