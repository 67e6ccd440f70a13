// Tests that the engine with weights keeps the contract of engine.h, in every KV format.
#include "libs/inference/testing/engine_conformance.h"
#include "tests/engine/tiny_engine.h"

namespace tokenrouter {
namespace {

EngineCase CaseOf(const std::string& name, KvFormat format) {
  return {name, [format] {
            TorchEngineOptions options = TinyEngineOptions("qwen2", WeightFormat::kInt8, format);
            options.max_step_tokens = 8192;  // More than KV holds.
            options.max_choices = 64;
            return MakeEngine(options);
          }};
}

INSTANTIATE_TEST_SUITE_P(Torch, EngineConformanceTest,
                         testing::Values(CaseOf("KvInFloats", KvFormat::kFp32),
                                         CaseOf("KvInEightBits", KvFormat::kInt8)),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tokenrouter
