// A linear layer on the CPU, y = x W^T + b, whichever implementation runs it.
// Formats: weight_format.h; with int8 and int4 weights every input row is quantized to int8 by its
// own range. All give a row the same bits, independently of the other rows.
// Ownership: CpuLinearContext names what all layers share, the memory of packed weights among it.
// Threads: everything on the engine's thread; the work itself runs on the pool.
// Units: rows of floats; weights are {outputs, inputs}, row-major.
// Errors: INVALID_ARGUMENT for a matrix that the format cannot hold, RESOURCE_EXHAUSTED or INTERNAL
// when packing fails; running cannot fail.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/cpu/kernels/panel_gemm.h"
#include "libs/torch_engine/cpu/packed_memory.h"
#include "libs/torch_engine/cpu/thread_pool.h"
#include "libs/torch_engine/model/weight_format.h"
#include "libs/torch_engine/model/weight_rows.h"

namespace tokenrouter {

// Input rows quantized for the layer that runs, kept for their capacity.
class QuantizedRows {
 public:
  QuantizedRows(int64_t max_rows, int64_t max_inputs);
  // `flip`: KernelTable::quantize. REQUIRES: within the sizes given above.
  void Quantize(const float* input, int64_t rows, int64_t inputs, uint8_t flip,
                const KernelTable& kernels, ThreadPool* pool);

  // {rows, inputs}, with readable bytes behind the last.
  int8_t* values() { return values_.data(); }
  // One per row, and behind the last the last one again: tiles of rows that are not full read it.
  const RowQuantization* rows() const { return rows_.data(); }

 private:
  std::vector<int8_t> values_;
  std::vector<RowQuantization> rows_;
};

struct CpuLinearContext {
  const KernelTable* kernels = nullptr;
  const PanelGemm* panel_gemm = nullptr;  // Null: XNNPACK runs int8 and int4.
  ThreadPool* pool = nullptr;
  PackedMemory* memory = nullptr;  // Of packed weights; must outlive the layers.
  QuantizedRows* quantized = nullptr;
};

class CpuLinear {
 public:
  virtual ~CpuLinear() = default;
  // input {rows, inputs} with kInputSlack readable floats behind it, output {rows, outputs}.
  virtual void Run(const float* input, int64_t rows, float* output,
                   const CpuLinearContext& context) = 0;
  static constexpr int64_t kInputSlack = 16;
};

// Chooses the implementation. Temporary memory: one slice of rows per thread.
absl::StatusOr<std::unique_ptr<CpuLinear>> PackLinear(const WeightRows& weights,
                                                      WeightFormat format,
                                                      const CpuLinearContext& context);

// How many output rows a slice holds, the unit that threads take. A multiple of kSliceGranule.
int64_t SliceRows(int64_t outputs, int64_t row_bytes);
inline constexpr int64_t kSliceGranule = 32;

}  // namespace tokenrouter
