#include "tests/bench/engine/fbgemm_linear.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_channel.h>
#include <ATen/ops/zeros.h>

#include <exception>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokenrouter {
namespace {

// Weights of the bench lie in [-1, 1].
constexpr double kScale = 1.0 / 127;

// Calls the operator with the arguments on `stack` and leaves its results there.
void Call(const char* name, torch::jit::Stack* stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
}

template <typename Function>
absl::Status Catching(const Function& function) {
  try {
    function();
    return absl::OkStatus();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return absl::UnimplementedError(absl::StrCat("libtorch: ", text.substr(0, text.find('\n'))));
  }
}

}  // namespace

struct FbgemmLinear::Packed {
  at::QEngine engine;
  int64_t inputs;
  c10::IValue weights;
};

FbgemmLinear::FbgemmLinear(std::unique_ptr<Packed> packed) : packed_(std::move(packed)) {}
FbgemmLinear::~FbgemmLinear() = default;

absl::StatusOr<std::unique_ptr<FbgemmLinear>> FbgemmLinear::Pack(TorchQuantizer quantizer,
                                                                 const std::vector<float>& weights,
                                                                 int64_t outputs, int64_t inputs,
                                                                 int threads) {
  auto packed = std::make_unique<Packed>();
  packed->engine = quantizer == TorchQuantizer::kFbgemm ? at::QEngine::FBGEMM : at::QEngine::ONEDNN;
  packed->inputs = inputs;
  const absl::Status status = Catching([&] {
    at::set_num_threads(threads);
    at::globalContext().setQEngine(packed->engine);
    const at::Tensor floats = at::from_blob(const_cast<float*>(weights.data()), {outputs, inputs});
    const at::Tensor scales = at::ones({outputs}, at::kDouble).mul_(kScale);
    const at::Tensor zeros = at::zeros({outputs}, at::kLong);
    torch::jit::Stack stack = {at::quantize_per_channel(floats, scales, zeros, 0, at::kQInt8),
                               c10::IValue()};
    Call("quantized::linear_prepack", &stack);
    packed->weights = std::move(stack.front());
  });
  if (!status.ok()) return status;
  return std::unique_ptr<FbgemmLinear>(new FbgemmLinear(std::move(packed)));
}

absl::Status FbgemmLinear::Run(const float* input, int64_t rows) {
  return Catching([&] {
    at::globalContext().setQEngine(packed_->engine);
    torch::jit::Stack stack = {at::from_blob(const_cast<float*>(input), {rows, packed_->inputs}),
                               packed_->weights, /*reduce_range=*/false};
    Call("quantized::linear_dynamic", &stack);
  });
}

}  // namespace tokenrouter
