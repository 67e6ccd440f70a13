#include "libs/weights/description/model_description.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

absl::Status CheckRange(const std::string& where, const char* what, int64_t value, int64_t least,
                        int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": ", what, " is ", value, ", allowed are ", least, " to ", most));
}

absl::Status CheckPositive(const std::string& where, const char* what, double value) {
  if (std::isfinite(value) && value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": ", what, " is ", value, ", expected a positive number"));
}

absl::Status CheckBetween(const std::string& where, const char* what, double value, double least,
                          double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": ", what, " is ", value, ", allowed are ", least, " to ", most));
}

absl::Status CheckRope(const RopeDescription& rope, int64_t head_dim, const std::string& where) {
  TR_RETURN_IF_ERROR(CheckRange(where, "rotary dimension", rope.dim, 2, head_dim));
  if (rope.dim % 2 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": rotary dimension is ", rope.dim, ", expected an even number"));
  }
  TR_RETURN_IF_ERROR(CheckBetween(where, "rotary theta", rope.theta, kMinRopeTheta, kMaxRopeTheta));
  TR_RETURN_IF_ERROR(
      CheckBetween(where, "rotary scaling factor", rope.factor, kMinRopeFactor, kMaxRopeFactor));
  if (rope.scaling == RopeScaling::kLlama3 || rope.scaling == RopeScaling::kYarn) {
    TR_RETURN_IF_ERROR(CheckRange(where, "original context of the rotary scaling",
                                  rope.original_context, 1, kMaxContextLength));
  }
  if (rope.scaling == RopeScaling::kLlama3 &&
      !(rope.low_frequency_factor > 0 && rope.high_frequency_factor > rope.low_frequency_factor)) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": rotary low_freq_factor is ", rope.low_frequency_factor, " and high_freq_factor ",
        rope.high_frequency_factor, ", expected 0 < low < high"));
  }
  if (rope.scaling == RopeScaling::kYarn) {
    TR_RETURN_IF_ERROR(CheckPositive(where, "rotary beta_fast", rope.beta_fast));
    TR_RETURN_IF_ERROR(CheckPositive(where, "rotary beta_slow", rope.beta_slow));
    TR_RETURN_IF_ERROR(CheckPositive(where, "rotary attention factor", RopeAttentionFactor(rope)));
  }
  for (const float divisor : rope.divisors) {
    TR_RETURN_IF_ERROR(CheckPositive(where, "rotary frequency divisor", divisor));
  }
  if (!rope.divisors.empty() && static_cast<int64_t>(rope.divisors.size()) != rope.dim / 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": ", rope.divisors.size(), " rotary frequency divisors, expected ", rope.dim / 2));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ArchitectureName(Architecture architecture) {
  switch (architecture) {
    case Architecture::kLlama:
      return "llama";
    case Architecture::kQwen2:
      return "qwen2";
    case Architecture::kQwen3:
      return "qwen3";
  }
  return "";
}

absl::Status ValidateDescription(const ModelDescription& model, const std::string& where) {
  TR_RETURN_IF_ERROR(CheckRange(where, "layer count", model.layers, 1, kMaxLayers));
  TR_RETURN_IF_ERROR(CheckRange(where, "hidden size", model.hidden, 1, kMaxHidden));
  TR_RETURN_IF_ERROR(
      CheckRange(where, "feed-forward size", model.intermediate, 1, 16 * kMaxHidden));
  TR_RETURN_IF_ERROR(CheckRange(where, "head count", model.heads, 1, kMaxHidden));
  TR_RETURN_IF_ERROR(CheckRange(where, "key-value head count", model.kv_heads, 1, model.heads));
  TR_RETURN_IF_ERROR(CheckRange(where, "head dimension", model.head_dim, 2, kMaxHidden));
  TR_RETURN_IF_ERROR(CheckRange(where, "vocabulary rows", model.vocab_rows, 1, kMaxVocabRows));
  TR_RETURN_IF_ERROR(
      CheckRange(where, "context length", model.context_length, 1, kMaxContextLength));
  TR_RETURN_IF_ERROR(
      CheckRange(where, "sliding window", model.sliding_window, 0, kMaxContextLength));
  if (model.heads % model.kv_heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": head count ", model.heads,
                                                   " is no multiple of the ", model.kv_heads,
                                                   " key-value heads"));
  }
  TR_RETURN_IF_ERROR(CheckPositive(where, "rms norm epsilon", model.rms_epsilon));
  TR_RETURN_IF_ERROR(CheckRope(model.rope, model.head_dim, where));
  TR_RETURN_IF_ERROR(CheckRange(where, "bos token id", model.bos_id, -1, model.vocab_rows - 1));
  TR_RETURN_IF_ERROR(CheckRange(where, "pad token id", model.pad_id, -1, model.vocab_rows - 1));
  for (const int64_t id : model.eos_ids) {
    TR_RETURN_IF_ERROR(CheckRange(where, "eos token id", id, 0, model.vocab_rows - 1));
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
