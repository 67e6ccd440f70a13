// The effect of prompts on the choice of a service mode: large-only service prefills each prompt
// once; routed service prefills it on the small side too, and on the large side only if the request
// is routed at least once. Two sides that share a device pay for both, sides with dedicated devices
// for the slower. Threads: pure functions. Units: milliseconds of device time, not latency, since
// every prefill delays all requests on its device.
#pragma once

#include "libs/batching_model/mode_controller.h"

namespace tokenrouter {

// A request, or the mean of a load. The times are those of prefilling the uncached part of its
// prompt.
struct PromptCost {
  double small_prefill_ms = 0;
  double large_prefill_ms = 0;
  double expected_tokens = 0;  // That it is still to generate.
  double r = 0.1;              // In (0, 1].
  bool shared_device = true;
};

// The prefill time of one request in either mode.
double PromptMs(const PromptCost& prompt, ServiceMode mode);

// The prediction for a load whose requests bring such prompts; `prediction` covers decoding alone.
// The times per token stay unchanged. Without expected tokens nothing is added.
ModePrediction WithPrompts(const ModePrediction& prediction, const PromptCost& mean);

// The time that routing this request saves; negative: it costs time. `prediction` already includes
// the prompts of a mean request of the load, `mean`; without expected tokens in `mean` it has none.
double RoutingSavesMs(const ModePrediction& prediction, const PromptCost& prompt,
                      const PromptCost& mean = {});

}  // namespace tokenrouter
