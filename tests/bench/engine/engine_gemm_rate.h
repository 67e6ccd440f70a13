// How fast this machine's libraries multiply int8 matrices of a model's shapes: our kernel, the
// XNNPACK inside libtorch, FBGEMM and oneDNN as libtorch calls them. Quantizing the input rows is
// part of each. Threads: each library's own, `threads` of them; the libraries alternate.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/weights/description/model_description.h"

namespace tokenrouter {

struct GemmRate {
  std::string library;
  int tokens = 0;          // Rows of the input.
  double flops_per_s = 0;  // A multiply-add is two.
  bool ours = false;
};

// All libraries with the matrices of a model's layers packed. Threads: one.
class GemmMeter {
 public:
  static absl::StatusOr<std::unique_ptr<GemmMeter>> Create(const ModelDescription& model,
                                                           int threads);
  ~GemmMeter();
  // Each library once, one after the other. REQUIRES: 1 <= tokens <= kMostTokens.
  absl::StatusOr<std::vector<GemmRate>> Measure(int tokens);
  // Medians over `rounds` after one that warms up, per library and number of tokens, ascending.
  absl::StatusOr<std::vector<GemmRate>> MeasureAll(int rounds);

  static constexpr int kMostTokens = 1024;

 private:
  class Libraries;
  explicit GemmMeter(std::unique_ptr<Libraries> libraries);

  const std::unique_ptr<Libraries> libraries_;
};

}  // namespace tokenrouter
