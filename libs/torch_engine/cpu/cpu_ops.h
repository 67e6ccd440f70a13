// The CPU as a device: our kernels, XNNPACK for matrices that they do not take, one thread pool.
// Ownership, threads, units and errors: model/ops.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/cpu/cpu_linear.h"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/cpu/kv_memory.h"
#include "libs/torch_engine/cpu/thread_pool.h"
#include "libs/torch_engine/model/kv_format.h"
#include "libs/torch_engine/model/ops.h"

namespace tokenrouter {

struct CpuOpsOptions {
  WeightFormat weight_format = WeightFormat::kInt8;
  KvFormat kv_format = KvFormat::kFp32;
  int64_t kv_bytes = 0;                  // Budget of KV memory.
  int64_t max_rows = 0;                  // Most rows of any call.
  int64_t max_inputs = 0;                // Widest input of any matrix.
  const KernelTable* kernels = nullptr;  // Null: the best this processor runs.
  // Null: the best this processor runs, or XNNPACK when `kernels` is given.
  const PanelGemm* panel_gemm = nullptr;
};

class CpuOps : public Ops {
 public:
  // `pool` must outlive the result. REQUIRES: shape.head_dim <= kMaxHeadDim.
  static absl::StatusOr<std::unique_ptr<CpuOps>> Create(const AttentionShape& shape,
                                                        const CpuOpsOptions& options,
                                                        ThreadPool* pool);

  int64_t kv_blocks() const { return kv_->blocks(); }
  // Names everything of the device that the bytes of packed weights may depend on.
  std::string PackedName() const;
  PackedMemory* packed_memory() { return &memory_; }

  std::string NumericsName() const override;
  absl::StatusOr<std::unique_ptr<Matrix>> Pack(const WeightRows& weights, MatrixUse use) override;
  absl::StatusOr<std::unique_ptr<FloatBuffer>> AllocateFloats(int64_t count) override;
  absl::StatusOr<std::unique_ptr<FloatBuffer>> Upload(std::span<const float> values) override;
  void CopyBlocks(std::span<const BlockCopy> copies) override;
  void Embed(const WeightRows& table, std::span<const int32_t> ids, float* out) override;
  void Multiply(Matrix* matrix, const float* in, int64_t rows, float* out) override;
  void Norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
            float* out) override;
  void AddNorm(float* x, const float* delta, const float* weight, int64_t rows, int64_t width,
               float epsilon, float* out) override;
  void KeepRows(std::span<const int64_t> rows, int64_t width, float* x) override;
  void RotaryAngles(const StepLayout& layout, std::span<const double> frequencies, double factor,
                    float* cosines, float* sines) override;
  void RotateAndStore(const StepLayout& layout, int64_t layer, const HeadNorms& norms,
                      const float* cosines, const float* sines, float* qkv) override;
  void Attend(const StepLayout& layout, int64_t layer, const float* qkv, float* out) override;
  void SwiGlu(const float* gate_up, int64_t rows, int64_t width, float* out) override;

 private:
  CpuOps(const AttentionShape& shape, const CpuOpsOptions& options, ThreadPool* pool);
  // Kernel and format of the matrices.
  std::string LinearName() const;
  // Calls use(first, count) for parts of [0, rows), on several threads when the work is worth it.
  template <typename Use>
  void ForRows(int64_t rows, int64_t floats_per_row, const Use& use);
  void RotateAndStoreToken(const TokenRun& run, int32_t token, int64_t layer,
                           const HeadNorms& norms, const float* cosines, const float* sines,
                           float* qkv);
  // Items by the part, for threads that would have none otherwise, and then their results joined.
  void AttendByPart(int64_t operations);

  const AttentionShape shape_;
  const WeightFormat weight_format_;
  const KvFormat kv_format_;
  const KernelTable& kernels_;
  const KvKernels& kv_kernels_;
  ThreadPool* const pool_;
  std::unique_ptr<KvMemory> kv_;
  QuantizedRows quantized_;
  PackedMemory memory_;  // Before matrices are packed; see PackedMemory::UseFiles.
  const CpuLinearContext linear_context_;
  // Of the current call of Attend, kept for their capacity.
  std::vector<AttentionItem> items_;
  std::vector<AttentionItem> parts_;
  std::vector<float> partials_;
};

}  // namespace tokenrouter
