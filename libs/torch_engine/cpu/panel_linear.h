// Linear layers in int8 or int4 on our own kernels (kernels/panel_gemm.h), for processors with AVX2
// or more. Packs the weights into panels of kPanelOutputs outputs, the same for all kernels.
// Ownership, threads, units and errors: cpu_linear.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/cpu/cpu_linear.h"

namespace tokenrouter {

class PanelLinear : public CpuLinear {
 public:
  // Whether the kernels take such a matrix.
  static bool Fits(const WeightRows& weights, WeightFormat format);
  // REQUIRES: Fits.
  static absl::StatusOr<std::unique_ptr<PanelLinear>> Pack(const WeightRows& weights,
                                                           WeightFormat format,
                                                           const CpuLinearContext& context);
  void Run(const float* input, int64_t rows, float* output,
           const CpuLinearContext& context) override;

 private:
  PanelLinear(int64_t inputs, int64_t outputs, WeightFormat format);
  void PackInt8(const WeightRows& weights, int64_t panel, std::byte* out) const;
  void PackInt4(const WeightRows& weights, int64_t panel, std::byte* out) const;

  const int64_t inputs_;
  const int64_t outputs_;
  const WeightFormat format_;
  const int64_t panels_;
  const int64_t panel_bytes_;
  const std::byte* panels_memory_ = nullptr;  // In the context's memory.
  std::vector<float> bias_;                   // Per output, padded to whole panels.
};

}  // namespace tokenrouter
