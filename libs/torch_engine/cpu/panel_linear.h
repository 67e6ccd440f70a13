// Int8 linear layers on our own dot-product kernel (kernels/int8_gemm.h), for processors that have
// the instructions. Packs the weights into panels of kPanelOutputs outputs.
// Ownership, threads, units and errors: cpu_linear.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/cpu/cpu_linear.h"

namespace tokenrouter {

class PanelLinear : public CpuLinear {
 public:
  // REQUIRES: weights.inputs is a multiple of kInt8InputGroup and at most kMaxInt8Inputs.
  static absl::StatusOr<std::unique_ptr<PanelLinear>> Pack(const WeightRows& weights,
                                                           ThreadPool* pool);
  void Run(const float* input, int64_t rows, float* output,
           const CpuLinearContext& context) override;

 private:
  struct Free {
    void operator()(int8_t* memory) const;
  };
  PanelLinear(int64_t inputs, int64_t outputs);
  void PackPanel(const WeightRows& weights, int64_t panel);

  const int64_t inputs_;
  const int64_t outputs_;
  const int64_t panels_;
  std::unique_ptr<int8_t[], Free> weights_;  // Panels, cache-line aligned.
  // Per output, padded to whole panels.
  std::vector<int32_t> sums_;
  std::vector<float> scales_;
  std::vector<float> bias_;
};

}  // namespace tokenrouter
