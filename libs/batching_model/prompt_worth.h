// What prompts change about the choice of a service mode: large-alone service reads each once;
// routed service reads it on the small side too, and on the large side only if the request meets a
// routing point at all. Sides of one device pay for both, sides with a device each for the slower.
// Threads: pure functions. Units: milliseconds of device time, not latency: whoever reads a prompt
// holds up everyone on its device.
#pragma once

#include "libs/batching_model/mode_controller.h"

namespace tokenrouter {

// A request, or the mean of a load. The times are of reading what of its prompt is in no cache.
struct PromptCost {
  double small_prefill_ms = 0;
  double large_prefill_ms = 0;
  double expected_tokens = 0;  // That it will write, or still write.
  double r = 0.1;              // In (0, 1].
  bool shared_device = true;
};

// Of one request in either mode.
double PromptMs(const PromptCost& prompt, ServiceMode mode);

// The prediction for a load whose requests bring such prompts; `prediction` is of decoding alone.
// The times per token stay as they are. Without expected tokens nothing is added.
ModePrediction WithPrompts(const ModePrediction& prediction, const PromptCost& mean);

// What routing this request saves; negative: it costs. `prediction` has the prompts of a mean
// request of the load, `mean`, in it already; without expected tokens in `mean` it has none.
double RoutingSavesMs(const ModePrediction& prediction, const PromptCost& prompt,
                      const PromptCost& mean = {});

}  // namespace tokenrouter
