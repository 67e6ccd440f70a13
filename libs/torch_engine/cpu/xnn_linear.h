// Linear layers on XNNPACK: y = x W^T + b with W packed once at load. This is the only file pair
// that sees XNNPACK, whose symbols come from inside libtorch.
// Formats: kInt8 keeps weights as int8 with one scale per output channel and quantizes every input
// row to int8 by its own range; kFp32 keeps floats and is the reference. Both give a row the same
// bits whatever other rows run beside it.
// Ownership: a matrix owns its packed weights, XnnActivations the scratch that all matrices share.
// Threads: everything on the engine's thread; the work itself runs on the pool.
// Units: rows of floats; weights are {outputs, inputs}, row-major.
// Errors: RESOURCE_EXHAUSTED or INTERNAL when packing fails; a failure while running is a TR_CHECK,
// because every shape was accepted at load.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/cpu/thread_pool.h"

struct xnn_operator;

namespace tokenrouter {

enum class WeightFormat { kInt8, kFp32 };
std::string_view WeightFormatName(WeightFormat format);

// Fills `out` with weight rows [first, first + count) as floats. Called from many threads at once.
using WeightRowReader = std::function<void(int64_t first, int64_t count, std::span<float> out)>;

struct XnnOperatorDeleter {
  void operator()(xnn_operator* op) const;
};
using XnnOperator = std::unique_ptr<xnn_operator, XnnOperatorDeleter>;

// Scratch for quantized input rows.
class XnnActivations {
 public:
  static absl::StatusOr<std::unique_ptr<XnnActivations>> Create(int64_t max_rows,
                                                                int64_t max_inputs);

 private:
  friend class XnnLinear;
  XnnActivations() = default;
  XnnOperator convert_;
  std::vector<int8_t> values_;
  std::vector<int64_t> parameters_;  // xnn_quantization_params, 8 bytes each.
};

class XnnLinear {
 public:
  // Temporary memory: at most kMaxSliceBytes beside the packed weights. `bias` may be empty.
  static absl::StatusOr<std::unique_ptr<XnnLinear>> Pack(int64_t inputs, int64_t outputs,
                                                         WeightFormat format,
                                                         const WeightRowReader& read,
                                                         std::span<const float> bias,
                                                         ThreadPool* pool);
  static constexpr int64_t kMaxSliceBytes = int64_t{256} << 20;

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }

  // input {rows, inputs} with kInputSlack readable floats behind it, output {rows, outputs}.
  void Run(const float* input, int64_t rows, float* output, XnnActivations* scratch,
           ThreadPool* pool);
  static constexpr int64_t kInputSlack = 16;

 private:
  XnnLinear(int64_t inputs, int64_t outputs, WeightFormat format)
      : inputs_(inputs), outputs_(outputs), format_(format) {}
  absl::Status PackSlice(int64_t first, int64_t count, const WeightRowReader& read,
                         const float* bias, ThreadPool* pool);

  // Large matrices are cut by output rows so that packing needs little temporary memory.
  struct Slice {
    int64_t first = 0;
    XnnOperator op;
    int64_t shaped_rows = -1;  // Batch size the operator was last shaped for.
  };
  const int64_t inputs_;
  const int64_t outputs_;
  const WeightFormat format_;
  std::vector<Slice> slices_;
};

}  // namespace tokenrouter
