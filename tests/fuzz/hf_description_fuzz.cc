// Any bytes as the descriptions of a Hugging Face folder: refused, or a model whose sizes and
// rotary embedding can be used. The first byte picks: an even one reads config.json and, behind a
// zero byte if there is one, generation_config.json; an odd one reads model.safetensors.index.json.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "libs/status/check.h"
#include "libs/weights/description/tensor_names.h"
#include "libs/weights/hugging_face/hf_description.h"
#include "libs/weights/hugging_face/safetensors_index.h"

namespace tokenrouter {
namespace {

void CheckModel(const ModelDescription& model) {
  TR_CHECK(ValidateDescription(model, "fuzz").ok());
  for (const TensorRole role : RolesOf(model)) {
    for (const int64_t size : ExpectedShape(role, model)) TR_CHECK(size > 0);
  }
  const std::vector<double> frequencies = RopeFrequencies(model.rope);
  TR_CHECK(frequencies.size() == static_cast<size_t>(model.rope.dim / 2));
  for (const double frequency : frequencies) TR_CHECK(std::isfinite(frequency)) << frequency;
  TR_CHECK(RopeAttentionFactor(model.rope) > 0);
}

void ReadConfig(std::span<const std::byte> text) {
  const auto zero = std::find(text.begin(), text.end(), std::byte{0});
  const auto config = static_cast<size_t>(zero - text.begin());
  std::optional<std::span<const std::byte>> generation;
  if (zero != text.end()) generation = text.subspan(config + 1);
  const auto model = DescribeHf(text.first(config), generation, "fuzz");
  if (model.ok()) CheckModel(*model);
}

void ReadIndex(std::span<const std::byte> text) {
  const auto shards = ParseSafetensorsIndex(text, "fuzz.json");
  if (!shards.ok()) return;
  for (const auto& [tensor, shard] : *shards) {
    TR_CHECK(!shard.empty() && shard.find('/') == std::string::npos) << tensor;
  }
}

}  // namespace
}  // namespace tokenrouter

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> text = std::as_bytes(std::span(data, size)).subspan(1);
  if (data[0] % 2 == 0) {
    tokenrouter::ReadConfig(text);
  } else {
    tokenrouter::ReadIndex(text);
  }
  return 0;
}
