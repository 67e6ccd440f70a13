// How fast this machine's libraries multiply int8 matrices of a model's shapes: our kernel, the
// XNNPACK inside libtorch, FBGEMM and oneDNN as libtorch calls them. Quantizing the input rows is
// part of each. Threads: each library's own, `threads` of them; they take turns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/weights/model_description.h"

namespace tokenrouter {

struct GemmRate {
  std::string library;
  int tokens = 0;          // Rows of the input.
  double flops_per_s = 0;  // Median; a multiply-add is two.
};

// One rate per library and number of tokens.
absl::StatusOr<std::vector<GemmRate>> MeasureGemmRates(const ModelDescription& model, int threads,
                                                       int rounds);

}  // namespace tokenrouter
