#include "tests/bench/engine_gemm_rate.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/cpu/cpu_linear.h"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/cpu/thread_pool.h"
#include "tests/bench/fbgemm_linear.h"
#include "tests/bench/percentile.h"

namespace tokenrouter {
namespace {

constexpr int kTokens[] = {8, 16, 32, 64, 128, 256, 512, 1024};
constexpr int kMostTokens = 1024;
constexpr int64_t kWeightsBytes = 96 << 20;  // Far above any cache.

struct Shape {
  int64_t inputs, outputs;
};

// Whole layers until weights do not fit a cache.
std::vector<Shape> ShapesOf(const ModelDescription& model) {
  const int64_t query = model.heads * model.head_dim;
  const int64_t kv = model.kv_heads * model.head_dim;
  std::vector<Shape> shapes;
  for (int64_t bytes = 0; bytes < kWeightsBytes;) {
    for (const Shape& shape :
         {Shape{model.hidden, query + 2 * kv}, Shape{query, model.hidden},
          Shape{model.hidden, 2 * model.intermediate}, Shape{model.intermediate, model.hidden}}) {
      shapes.push_back(shape);
      bytes += shape.inputs * shape.outputs;
    }
  }
  return shapes;
}

// One library with all matrices packed: runs them on so many rows.
struct Library {
  std::string name;
  std::function<absl::Status(int tokens)> run;
};

class Bench {
 public:
  Bench(const ModelDescription& model, int threads)
      : shapes_(ShapesOf(model)),
        threads_(threads),
        widest_(std::max({model.hidden, model.heads * model.head_dim, model.intermediate})),
        tallest_(std::max(2 * model.intermediate, 3 * model.heads * model.head_dim)),
        input_(static_cast<size_t>(kMostTokens * widest_ + CpuLinear::kInputSlack)),
        output_(static_cast<size_t>(kMostTokens * tallest_)),
        pool_(threads, 0),
        quantized_(kMostTokens, widest_) {
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = Value(i);
  }

  absl::Status AddAll() {
    if (!UsablePanelGemms().empty()) {
      const PanelGemm* const own = UsablePanelGemms().front();
      TR_RETURN_IF_ERROR(AddOurs("ours_int8", WeightFormat::kInt8, own));
      TR_RETURN_IF_ERROR(AddOurs("ours_int4", WeightFormat::kInt4, own));
    }
    TR_RETURN_IF_ERROR(AddOurs("xnnpack", WeightFormat::kInt8, nullptr));
    for (const auto& [name, quantizer] : {std::pair{"fbgemm", TorchQuantizer::kFbgemm},
                                          std::pair{"onednn", TorchQuantizer::kOneDnn}}) {
      const absl::Status status = AddTorch(name, quantizer);
      if (!status.ok()) std::cerr << name << " is left out: " << status << "\n";
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<GemmRate>> Run(int rounds) {
    double work = 0;
    for (const Shape& shape : shapes_)
      work += 2.0 * static_cast<double>(shape.inputs * shape.outputs);
    std::vector<GemmRate> rates;
    for (const int tokens : kTokens) {
      std::vector<std::vector<double>> found(libraries_.size());
      for (int round = 0; round <= rounds; ++round) {  // The first one warms up.
        for (size_t i = 0; i < libraries_.size(); ++i) {
          const absl::Time start = absl::Now();
          TR_RETURN_IF_ERROR(libraries_[i].run(tokens));
          const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
          if (round > 0) found[i].push_back(work * tokens / seconds);
        }
      }
      for (size_t i = 0; i < libraries_.size(); ++i) {
        rates.push_back({libraries_[i].name, tokens, Median(found[i])});
      }
    }
    return rates;
  }

 private:
  static float Value(size_t i) { return static_cast<float>(i * 7919 % 255) / 127.0f - 1.0f; }

  // Null: XNNPACK.
  absl::Status AddOurs(const std::string& name, WeightFormat format, const PanelGemm* gemm) {
    const CpuLinearContext context{.kernels = UsableKernels().front(),
                                   .panel_gemm = gemm,
                                   .pool = &pool_,
                                   .memory = &memory_,
                                   .quantized = &quantized_};
    auto linears = std::make_shared<std::vector<std::unique_ptr<CpuLinear>>>();
    for (const Shape& shape : shapes_) {
      const auto read = [](int64_t first, int64_t, std::span<float> out) {
        for (size_t i = 0; i < out.size(); ++i) out[i] = Value(i + static_cast<size_t>(first));
      };
      TR_ASSIGN_OR_RETURN(
          auto linear,
          PackLinear({.inputs = shape.inputs, .outputs = shape.outputs, .read = read, .bias = {}},
                     format, context));
      linears->push_back(std::move(linear));
    }
    libraries_.push_back({name, [this, linears, context](int tokens) {
                            for (const auto& linear : *linears) {
                              linear->Run(input_.data(), tokens, output_.data(), context);
                            }
                            return absl::OkStatus();
                          }});
    return absl::OkStatus();
  }

  absl::Status AddTorch(const std::string& name, TorchQuantizer quantizer) {
    auto linears = std::make_shared<std::vector<std::unique_ptr<FbgemmLinear>>>();
    for (const Shape& shape : shapes_) {
      std::vector<float> weights(static_cast<size_t>(shape.inputs * shape.outputs));
      for (size_t i = 0; i < weights.size(); ++i) weights[i] = Value(i);
      TR_ASSIGN_OR_RETURN(auto linear, FbgemmLinear::Pack(quantizer, weights, shape.outputs,
                                                          shape.inputs, threads_));
      linears->push_back(std::move(linear));
    }
    libraries_.push_back({name, [this, linears](int tokens) {
                            for (const auto& linear : *linears) {
                              TR_RETURN_IF_ERROR(linear->Run(input_.data(), tokens));
                            }
                            return absl::OkStatus();
                          }});
    return absl::OkStatus();
  }

  const std::vector<Shape> shapes_;
  const int threads_;
  const int64_t widest_, tallest_;
  std::vector<float> input_, output_;
  ThreadPool pool_;
  QuantizedRows quantized_;
  PackedMemory memory_;
  std::vector<Library> libraries_;
};

}  // namespace

absl::StatusOr<std::vector<GemmRate>> MeasureGemmRates(const ModelDescription& model, int threads,
                                                       int rounds) {
  Bench bench(model, threads);
  TR_RETURN_IF_ERROR(bench.AddAll());
  return bench.Run(rounds);
}

}  // namespace tokenrouter
