// Tests that the engines without weights keep the contract of engine.h.
#include "libs/inference/testing/engine_conformance.h"

#include "libs/synthetic/fake_engine.h"
#include "libs/synthetic/timed_engine.h"

namespace tokenrouter {
namespace {

SyntheticEngineOptions SmallOptions(int32_t block_size) {
  return {.model = {.seed = 5, .usable_ids = 500, .eos_ids = {2}, .eos_probability = 0.02},
          .context_limit = 300,
          .block_size = block_size,
          .total_blocks = 640 / block_size};
}

const EngineCase kCases[] = {
    {"Fake", [] { return std::make_unique<FakeEngine>(SmallOptions(16)); }},
    {"FakeOfSmallBlocks", [] { return std::make_unique<FakeEngine>(SmallOptions(4)); }},
    {"Timed",
     [] {
       return std::make_unique<TimedEngine>(SmallOptions(16), StepCurve{.base_ms = 5}, nullptr);
     }},
};
const auto kName = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(Hash, EngineConformanceTest, testing::ValuesIn(kCases), kName);
INSTANTIATE_TEST_SUITE_P(Hash, EngineConformanceDeathTest, testing::ValuesIn(kCases), kName);

}  // namespace
}  // namespace tokenrouter
