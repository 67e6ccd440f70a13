// Ops is the set of operations that a device must provide so that the decoder runs on it. The
// decoder decides the order, a device decides how; a new device is a new implementation of this
// interface. Ownership: an Ops owns its compute resources and the KV memory; matrices and buffers
// are the caller's and must be destroyed before it. Threads: one owner thread. Units: activations
// are floats, row-major, one row per token; `rows` counts tokens. Buffers of activations come from
// AllocateFloats. Identity: a row's result never depends on the other rows of a call, nor on their
// number. Errors: Pack and AllocateFloats may fail (RESOURCE_EXHAUSTED; INVALID_ARGUMENT for a
// matrix that the weight format cannot hold); everything else was validated before the step and
// cannot.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "libs/paging/block_types.h"
#include "libs/torch_engine/model/step_layout.h"
#include "libs/torch_engine/model/weight_rows.h"

namespace tokenrouter {

// Weights in the device's own form.
class Matrix {
 public:
  virtual ~Matrix() = default;
};

// Memory of the device.
class FloatBuffer {
 public:
  virtual ~FloatBuffer() = default;
  virtual float* data() = 0;
};

// Sizes of attention, equal in all layers.
struct AttentionShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;  // Channels of a head that are rotated, even.
  int64_t window = 0;      // A query sees only this many last positions, its own included; 0: all.
  int64_t query_floats() const { return heads * head_dim; }
  int64_t kv_floats() const { return kv_heads * head_dim; }
  // A row of queries, then keys, then values.
  int64_t qkv_floats() const { return query_floats() + 2 * kv_floats(); }
};

// RMS norm of every query and key head before the rotation. Null weights: the model has none.
struct HeadNorms {
  const float* query = nullptr;  // {head_dim}
  const float* key = nullptr;    // {head_dim}
  float epsilon = 0;
};

// What a matrix is for: formats keep the output matrix, which chooses among all ids, finer.
enum class MatrixUse { kLayer, kOutput };

class Ops {
 public:
  virtual ~Ops() = default;

  // Names everything of the device that the bits of a result may depend on.
  virtual std::string NumericsName() const = 0;

  virtual absl::StatusOr<std::unique_ptr<Matrix>> Pack(const WeightRows& weights,
                                                       MatrixUse use) = 0;
  virtual absl::StatusOr<std::unique_ptr<FloatBuffer>> AllocateFloats(int64_t count) = 0;
  // A buffer that holds `values`.
  virtual absl::StatusOr<std::unique_ptr<FloatBuffer>> Upload(std::span<const float> values) = 0;

  // Copies the KV of whole or partial blocks, all layers.
  virtual void CopyBlocks(std::span<const BlockCopy> copies) = 0;

  // out[i] = the embedding of ids[i]: row ids[i] of `table`.
  virtual void Embed(const WeightRows& table, std::span<const int32_t> ids, float* out) = 0;
  // out {rows, outputs} = in {rows, inputs} W^T + b.
  virtual void Multiply(Matrix* matrix, const float* in, int64_t rows, float* out) = 0;
  // out = x / rms(x) * weight, row by row.
  virtual void Norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
                    float* out) = 0;
  // x += delta, then out = x / rms(x) * weight.
  virtual void AddNorm(float* x, const float* delta, const float* weight, int64_t rows,
                       int64_t width, float epsilon, float* out) = 0;
  // Moves row rows[i] to row i, in place. REQUIRES: `rows` ascend.
  virtual void KeepRows(std::span<const int64_t> rows, int64_t width, float* x) = 0;
  // Cosines and sines {tokens, frequencies} of position * frequency, times `factor`.
  virtual void RotaryAngles(const StepLayout& layout, std::span<const double> frequencies,
                            double factor, float* cosines, float* sines) = 0;
  // Norms queries and keys head by head and rotates them by their position, in place, then stores
  // keys and values of `layer`.
  // `cosines` and `sines`: {tokens, rotary_dim / 2}. REQUIRES: the blocks of `layout` are extended.
  virtual void RotateAndStore(const StepLayout& layout, int64_t layer, const HeadNorms& norms,
                              const float* cosines, const float* sines, float* qkv) = 0;
  // out {tokens, heads, head_dim} = attention of the queries in qkv, causal by position and within
  // the window.
  virtual void Attend(const StepLayout& layout, int64_t layer, const float* qkv, float* out) = 0;
  // gate_up {rows, 2 * width} holds the gate, then up; out {rows, width} = silu(gate) * up.
  virtual void SwiGlu(const float* gate_up, int64_t rows, int64_t width, float* out) = 0;
};

}  // namespace tokenrouter
