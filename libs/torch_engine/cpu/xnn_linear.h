// Linear layers on XNNPACK: y = x W^T + b with W packed once at load. This is the only file pair
// that sees XNNPACK, whose symbols come from inside libtorch.
// Formats: int8 weights have one scale per output channel, and every input row is quantized to int8
// by its own range; fp32 is the reference. Both give a row the same bits whatever other rows run
// beside it.
// A matrix is cut by output rows into slices that fit a core's cache. Each slice is an operator
// without threads of its own; the pool hands slices out.
// Ownership: a matrix owns its packed weights, XnnActivations the scratch that matrices share.
// Threads: everything on the engine's thread; the work itself runs on the pool.
// Units: rows of floats; weights are {outputs, inputs}, row-major.
// Errors: RESOURCE_EXHAUSTED or INTERNAL when packing fails; a failure while running is a TR_CHECK,
// because every shape was accepted at load.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/cpu/thread_pool.h"
#include "libs/torch_engine/model/weight_rows.h"
#include "libs/torch_engine/weight_format.h"

struct xnn_operator;

namespace tokenrouter {

struct XnnOperatorDeleter {
  void operator()(xnn_operator* op) const;
};
using XnnOperator = std::unique_ptr<xnn_operator, XnnOperatorDeleter>;

// Scratch for quantized input rows.
class XnnActivations {
 public:
  XnnActivations(int64_t max_rows, int64_t max_inputs);

 private:
  friend class XnnLinear;
  std::vector<int8_t> values_;
  std::vector<RowQuantization> rows_;
};

class XnnLinear {
 public:
  // Temporary memory: one slice per thread.
  static absl::StatusOr<std::unique_ptr<XnnLinear>> Pack(const WeightRows& weights,
                                                         WeightFormat format, ThreadPool* pool);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }

  // input {rows, inputs} with kInputSlack readable floats behind it, output {rows, outputs}.
  void Run(const float* input, int64_t rows, float* output, const KernelTable& kernels,
           XnnActivations* scratch, ThreadPool* pool);
  static constexpr int64_t kInputSlack = 16;

 private:
  XnnLinear(int64_t inputs, int64_t outputs, WeightFormat format)
      : inputs_(inputs), outputs_(outputs), format_(format) {}

  struct Slice {
    int64_t first = 0;  // Output rows.
    int64_t count = 0;
    XnnOperator op;
    int64_t shaped_rows = -1;  // Batch size the operator was last shaped for.
  };
  absl::Status PackInt8(const WeightRows& weights, Slice* slice) const;
  absl::Status PackFp32(const WeightRows& weights, Slice* slice) const;
  void RunInt8(Slice* slice, const int8_t* input, const RowQuantization* quantization, int64_t rows,
               float* output) const;
  void RunFp32(Slice* slice, const float* input, int64_t rows, float* output) const;

  const int64_t inputs_;
  const int64_t outputs_;
  const WeightFormat format_;
  std::vector<Slice> slices_;
};

}  // namespace tokenrouter
