// Linear layers on XNNPACK, all formats. Only this file pair and xnn_packed see XNNPACK, whose
// symbols come from inside libtorch.
// A matrix is cut by output rows into slices that fit a core's cache. Each slice is an operator
// without threads; the pool hands slices out.
// Ownership, threads, units and errors: cpu_linear.h. A failure while running is a TR_CHECK,
// because every shape was accepted at load.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/cpu/cpu_linear.h"
#include "libs/torch_engine/cpu/xnn_packed.h"

struct xnn_operator;

namespace tokenrouter {

struct XnnOperatorDeleter {
  void operator()(xnn_operator* op) const;
};
using XnnOperator = std::unique_ptr<xnn_operator, XnnOperatorDeleter>;

class XnnLinear : public CpuLinear {
 public:
  static absl::StatusOr<std::unique_ptr<XnnLinear>> Pack(const WeightRows& weights,
                                                         WeightFormat format,
                                                         const CpuLinearContext& context);

  void Run(const float* input, int64_t rows, float* output,
           const CpuLinearContext& context) override;

 private:
  XnnLinear(int64_t inputs, int64_t outputs, WeightFormat format)
      : inputs_(inputs), outputs_(outputs), format_(format) {}

  struct Slice {
    int64_t first = 0;  // Output rows.
    int64_t count = 0;
    std::unique_ptr<XnnPacked> packed;
    XnnOperator op;
    int64_t shaped_rows = -1;  // Batch size the operator was last shaped for.
  };
  absl::Status PackSlice(const WeightRows& weights, Slice* slice) const;
  absl::Status PackInt8(const WeightRows& weights, Slice* slice) const;
  absl::Status PackInt4(const WeightRows& weights, Slice* slice) const;
  absl::Status PackFp32(const WeightRows& weights, Slice* slice) const;
  // Int8 or int4 weights.
  void RunQuantized(Slice* slice, const int8_t* input, const RowQuantization* quantization,
                    int64_t rows, float* output) const;
  void RunFp32(Slice* slice, const float* input, int64_t rows, float* output) const;

  const int64_t inputs_;
  const int64_t outputs_;
  const WeightFormat format_;
  std::vector<Slice> slices_;
};

}  // namespace tokenrouter
