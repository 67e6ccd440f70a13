#include "libs/torch_engine/cpu/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

// Floats of one item of row-wise work.
constexpr int64_t kItemFloats = 16384;
// A cosine and a sine cost about as much as simple work on this many floats.
constexpr int64_t kFloatsPerAngle = 64;
// Tokens of one attention item: enough to reuse a block from the cache, small enough to balance.
constexpr int32_t kAttentionItemTokens = 16;
// With fewer items, those of long sequences are shared by the part. So few are kept apart at once.
constexpr int kItemsPerThread = 2;
constexpr size_t kBufferAlignment = 64;

// Floats that an item's queries find in one part.
int64_t PartialsOf(const AttentionItem& item) {
  return int64_t{item.tokens} * item.group * PartialFloats(item.head_dim);
}

class CpuMatrix : public Matrix {
 public:
  explicit CpuMatrix(std::unique_ptr<CpuLinear> linear) : linear_(std::move(linear)) {}
  CpuLinear& linear() { return *linear_; }

 private:
  std::unique_ptr<CpuLinear> linear_;
};

const PanelGemm* PanelGemmOf(const CpuOpsOptions& options) {
  if (options.panel_gemm != nullptr || options.kernels != nullptr) return options.panel_gemm;
  return UsablePanelGemms().empty() ? nullptr : UsablePanelGemms().front();
}

class CpuBuffer : public FloatBuffer {
 public:
  // Null when there is no memory.
  static std::unique_ptr<CpuBuffer> Create(int64_t count) {
    const size_t bytes = (count + CpuLinear::kInputSlack) * sizeof(float);
    void* const data = ::operator new (bytes, std::align_val_t{kBufferAlignment}, std::nothrow);
    if (data == nullptr) return nullptr;
    std::fill_n(static_cast<float*>(data), count + CpuLinear::kInputSlack, 0.0f);
    return std::unique_ptr<CpuBuffer>(new CpuBuffer(static_cast<float*>(data)));
  }
  ~CpuBuffer() override { ::operator delete (data_, std::align_val_t{kBufferAlignment}); }
  float* data() override { return data_; }

 private:
  explicit CpuBuffer(float* data) : data_(data) {}
  float* const data_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CpuOps>> CpuOps::Create(const AttentionShape& shape,
                                                       const CpuOpsOptions& options,
                                                       ThreadPool* pool) {
  TR_CHECK(shape.head_dim <= kMaxHeadDim) << shape.head_dim;
  std::unique_ptr<CpuOps> ops(new CpuOps(shape, options, pool));
  TR_ASSIGN_OR_RETURN(ops->kv_, KvMemory::Create(shape, options.kv_format, options.kv_bytes));
  return ops;
}

CpuOps::CpuOps(const AttentionShape& shape, const CpuOpsOptions& options, ThreadPool* pool)
    : shape_(shape),
      weight_format_(options.weight_format),
      kv_format_(options.kv_format),
      kernels_(options.kernels != nullptr ? *options.kernels : *UsableKernels().front()),
      kv_kernels_(kernels_.kv(options.kv_format)),
      pool_(pool),
      quantized_(options.max_rows, options.max_inputs),
      linear_context_({.kernels = &kernels_,
                       .panel_gemm = PanelGemmOf(options),
                       .pool = pool,
                       .memory = &memory_,
                       .quantized = &quantized_}) {}

std::string CpuOps::NumericsName() const {
  return absl::StrCat("cpu ", kernels_.name, " ", LinearName(), " kv ",
                      std::string(KvFormatName(kv_format_)));
}

std::string CpuOps::LinearName() const {
  const bool own_gemm =
      weight_format_ != WeightFormat::kFp32 && linear_context_.panel_gemm != nullptr;
  return absl::StrCat(own_gemm ? linear_context_.panel_gemm->name : "xnn", " ",
                      std::string(WeightFormatName(weight_format_)));
}

std::string CpuOps::PackedName() const {
  // XNNPACK packs for the kernels that it chooses by these.
  std::string features;
  __builtin_cpu_init();
  const auto add = [&features](const char* name, bool has) {
    if (has) absl::StrAppend(&features, " ", name);
  };
  add("sse4.1", __builtin_cpu_supports("sse4.1") != 0);
  add("avx", __builtin_cpu_supports("avx") != 0);
  add("fma", __builtin_cpu_supports("fma") != 0);
  add("avx2", __builtin_cpu_supports("avx2") != 0);
  add("avx512f", __builtin_cpu_supports("avx512f") != 0);
  add("avx512bw", __builtin_cpu_supports("avx512bw") != 0);
  add("avx512vl", __builtin_cpu_supports("avx512vl") != 0);
  add("avx512vnni", __builtin_cpu_supports("avx512vnni") != 0);
  add("gfni", __builtin_cpu_supports("gfni") != 0);
  return absl::StrCat("cpu ", LinearName(), features);
}

absl::StatusOr<std::unique_ptr<Matrix>> CpuOps::Pack(const WeightRows& weights, MatrixUse use) {
  const bool finer = use == MatrixUse::kOutput && weight_format_ == WeightFormat::kInt4;
  TR_ASSIGN_OR_RETURN(auto linear, PackLinear(weights, finer ? WeightFormat::kInt8 : weight_format_,
                                              linear_context_));
  return std::make_unique<CpuMatrix>(std::move(linear));
}

absl::StatusOr<std::unique_ptr<FloatBuffer>> CpuOps::AllocateFloats(int64_t count) {
  std::unique_ptr<FloatBuffer> buffer = CpuBuffer::Create(count);
  if (buffer == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", count, " floats of activations: lower max_step_tokens"));
  }
  return buffer;
}

absl::StatusOr<std::unique_ptr<FloatBuffer>> CpuOps::Upload(std::span<const float> values) {
  TR_ASSIGN_OR_RETURN(auto buffer, AllocateFloats(static_cast<int64_t>(values.size())));
  std::copy(values.begin(), values.end(), buffer->data());
  return buffer;
}

template <typename Use>
void CpuOps::ForRows(int64_t rows, int64_t floats_per_row, const Use& use) {
  const int64_t part = std::max<int64_t>(1, kItemFloats / floats_per_row);
  pool_->For((rows + part - 1) / part, rows * floats_per_row,
             [&](int64_t item, int) { use(item * part, std::min(part, rows - item * part)); });
}

void CpuOps::CopyBlocks(std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) kv_->Copy(copy);
}

void CpuOps::Embed(const WeightRows& table, std::span<const int32_t> ids, float* out) {
  ForRows(static_cast<int64_t>(ids.size()), table.inputs, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      table.read(ids[i], 1, std::span(out + i * table.inputs, table.inputs));
    }
  });
}

void CpuOps::Multiply(Matrix* matrix, const float* in, int64_t rows, float* out) {
  static_cast<CpuMatrix*>(matrix)->linear().Run(in, rows, out, linear_context_);
}

void CpuOps::Norm(const float* x, const float* weight, int64_t rows, int64_t width, float epsilon,
                  float* out) {
  ForRows(rows, width, [&](int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      kernels_.rms_norm(x + r * width, weight, epsilon, width, out + r * width);
    }
  });
}

void CpuOps::AddNorm(float* x, const float* delta, const float* weight, int64_t rows, int64_t width,
                     float epsilon, float* out) {
  ForRows(rows, width, [&](int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      kernels_.add(x + r * width, delta + r * width, width);
      kernels_.rms_norm(x + r * width, weight, epsilon, width, out + r * width);
    }
  });
}

void CpuOps::KeepRows(std::span<const int64_t> rows, int64_t width, float* x) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    if (rows[i] != row) std::copy_n(x + rows[i] * width, width, x + row * width);
  }
}

void CpuOps::RotaryAngles(const StepLayout& layout, std::span<const double> frequencies,
                          double factor, float* cosines, float* sines) {
  const auto count = static_cast<int64_t>(frequencies.size());
  for (const TokenRun& run : layout.runs) {
    ForRows(run.tokens, count * kFloatsPerAngle, [&](int64_t first, int64_t tokens) {
      for (int64_t t = first; t < first + tokens; ++t) {
        const int64_t row = (run.first_token + t) * count;
        for (int64_t i = 0; i < count; ++i) {
          const double angle = static_cast<double>(run.first + t) * frequencies[i];
          cosines[row + i] = static_cast<float>(std::cos(angle) * factor);
          sines[row + i] = static_cast<float>(std::sin(angle) * factor);
        }
      }
    });
  }
}

void CpuOps::RotateAndStoreToken(const TokenRun& run, int32_t token, int64_t layer,
                                 const HeadNorms& norms, const float* cosines, const float* sines,
                                 float* qkv) {
  const int64_t row = run.first_token + token;
  const int64_t half = shape_.rotary_dim / 2;
  float* const queries = qkv + row * shape_.qkv_floats();
  float* const keys = queries + shape_.query_floats();
  const float* const values = keys + shape_.kv_floats();
  for (int64_t head = 0; head < shape_.heads + shape_.kv_heads; ++head) {
    float* const channels = queries + head * shape_.head_dim;
    const float* const norm = head < shape_.heads ? norms.query : norms.key;
    if (norm != nullptr) {
      kernels_.rms_norm(channels, norm, norms.epsilon, shape_.head_dim, channels);
    }
    kernels_.rotate(channels, cosines + row * half, sines + row * half, half);
  }
  const Position position = run.first + token;
  const BlockId block = run.blocks[position / kKvBlockTokens];
  for (int64_t head = 0; head < shape_.kv_heads; ++head) {
    kv_kernels_.store(keys + head * shape_.head_dim, values + head * shape_.head_dim,
                      static_cast<int>(shape_.head_dim), position % kKvBlockTokens,
                      kv_->Tile(layer, head, block));
  }
}

void CpuOps::RotateAndStore(const StepLayout& layout, int64_t layer, const HeadNorms& norms,
                            const float* cosines, const float* sines, float* qkv) {
  for (const TokenRun& run : layout.runs) {
    // Only tokens of one run share blocks, and they write different slots of them.
    ForRows(run.tokens, shape_.qkv_floats(), [&](int64_t first, int64_t count) {
      for (int64_t t = first; t < first + count; ++t) {
        RotateAndStoreToken(run, static_cast<int32_t>(t), layer, norms, cosines, sines, qkv);
      }
    });
  }
}

void CpuOps::Attend(const StepLayout& layout, int64_t layer, const float* qkv, float* out) {
  const int64_t group = shape_.heads / shape_.kv_heads;
  items_.clear();
  int64_t operations = 0;
  for (const TokenRun& run : layout.runs) {
    int64_t seen = run.first + run.tokens;
    if (shape_.window > 0) seen = std::min(seen, shape_.window);
    operations += 2 * shape_.query_floats() * run.tokens * seen;
    for (int32_t first = 0; first < run.tokens; first += kAttentionItemTokens) {
      for (int64_t head = 0; head < shape_.kv_heads; ++head) {
        const int64_t row = run.first_token + first;
        items_.push_back(
            {.queries = qkv + row * shape_.qkv_floats() + head * group * shape_.head_dim,
             .output = out + row * shape_.query_floats() + head * group * shape_.head_dim,
             .token_stride = shape_.qkv_floats(),
             .output_stride = shape_.query_floats(),
             .tokens = std::min(kAttentionItemTokens, run.tokens - first),
             .group = static_cast<int>(group),
             .head_dim = static_cast<int>(shape_.head_dim),
             .first = run.first + first,
             .window = static_cast<int32_t>(shape_.window),
             .kv = kv_->Tile(layer, head, 0),
             .block_stride = kv_->block_stride(),
             .blocks = run.blocks.data(),
             .scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim))});
      }
    }
  }
  if (pool_->threads() > 1 && std::ssize(items_) < int64_t{kItemsPerThread} * pool_->threads()) {
    return AttendByPart(operations);
  }
  pool_->For(std::ssize(items_), operations,
             [&](int64_t item, int) { kv_kernels_.attend(items_[item]); });
}

void CpuOps::AttendByPart(int64_t operations) {
  int64_t floats = 0;
  for (const AttentionItem& item : items_) floats += item.parts() * PartialsOf(item);
  if (std::ssize(partials_) < floats) partials_.resize(floats);
  parts_.clear();
  float* partial = partials_.data();
  for (const AttentionItem& item : items_) {
    for (int32_t part = 0; part < item.parts(); ++part, partial += PartialsOf(item)) {
      parts_.push_back(item);
      parts_.back().part = item.first_part() + part;
      parts_.back().partial = partial;
    }
  }
  pool_->For(std::ssize(parts_), operations,
             [&](int64_t part, int) { kv_kernels_.attend(parts_[part]); });
  const float* partials = partials_.data();
  for (const AttentionItem& item : items_) {
    kernels_.join(item, partials, item.parts());
    partials += item.parts() * PartialsOf(item);
  }
}

void CpuOps::SwiGlu(const float* gate_up, int64_t rows, int64_t width, float* out) {
  ForRows(rows, 2 * width, [&](int64_t first, int64_t count) {
    for (int64_t r = first; r < first + count; ++r) {
      const float* const gate = gate_up + r * 2 * width;
      kernels_.swiglu(gate, gate + width, width, out + r * width);
    }
  });
}

}  // namespace tokenrouter
