#include "tests/bench/engine/engine_gemm_rate.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/cpu/cpu_linear.h"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/cpu/thread_pool.h"
#include "tests/bench/engine/fbgemm_linear.h"
#include "tests/bench/measure/percentile.h"

namespace tokenrouter {
namespace {

constexpr int kTokens[] = {8, 16, 32, 64, 128, 256, 512, 1024};
constexpr int64_t kWeightsBytes = 96 << 20;  // Far above any cache.
// Threads of a library spin for a while after its work, in the way of the next one.
constexpr absl::Duration kSettle = absl::Milliseconds(10);

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

// One library with all matrices packed: runs them on a given number of rows.
struct Library {
  std::string name;
  bool ours;
  std::function<absl::Status(int tokens)> run;
};

}  // namespace

class GemmMeter::Libraries {
 public:
  Libraries(const ModelDescription& model, int threads)
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

  absl::StatusOr<std::vector<GemmRate>> Measure(int tokens) {
    double work = 0;
    for (const Shape& shape : shapes_)
      work += 2.0 * static_cast<double>(shape.inputs * shape.outputs);
    std::vector<GemmRate> rates;
    for (const Library& library : libraries_) {
      absl::SleepFor(kSettle);
      const absl::Time start = absl::Now();
      TR_RETURN_IF_ERROR(library.run(tokens));
      const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
      rates.push_back({library.name, tokens, work * tokens / seconds, library.ours});
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
    libraries_.push_back({name, gemm != nullptr, [this, linears, context](int tokens) {
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
    libraries_.push_back({name, false, [this, linears](int tokens) {
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

GemmMeter::GemmMeter(std::unique_ptr<Libraries> libraries) : libraries_(std::move(libraries)) {}
GemmMeter::~GemmMeter() = default;

absl::StatusOr<std::unique_ptr<GemmMeter>> GemmMeter::Create(const ModelDescription& model,
                                                             int threads) {
  auto libraries = std::make_unique<Libraries>(model, threads);
  TR_RETURN_IF_ERROR(libraries->AddAll());
  return std::unique_ptr<GemmMeter>(new GemmMeter(std::move(libraries)));
}

absl::StatusOr<std::vector<GemmRate>> GemmMeter::Measure(int tokens) {
  TR_CHECK(tokens >= 1 && tokens <= kMostTokens);
  return libraries_->Measure(tokens);
}

absl::StatusOr<std::vector<GemmRate>> GemmMeter::MeasureAll(int rounds) {
  std::vector<GemmRate> medians;
  for (const int tokens : kTokens) {
    TR_ASSIGN_OR_RETURN(std::vector<GemmRate> rates, Measure(tokens));  // Warms up.
    std::vector<std::vector<double>> found(rates.size());
    for (int round = 0; round < rounds; ++round) {
      TR_ASSIGN_OR_RETURN(rates, Measure(tokens));
      for (size_t i = 0; i < rates.size(); ++i) found[i].push_back(rates[i].flops_per_s);
    }
    for (size_t i = 0; i < rates.size(); ++i) {
      medians.push_back(rates[i]);
      medians.back().flops_per_s = Median(found[i]);
    }
  }
  return medians;
}

}  // namespace tokenrouter
