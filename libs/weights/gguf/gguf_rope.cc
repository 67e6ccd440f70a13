#include "libs/weights/gguf/gguf_rope.h"

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/dequantize.h"

namespace tokenrouter {
namespace {

absl::Status UnsupportedKey(const GgufFile& file, const std::string& key, const std::string& value,
                            const std::string& supported) {
  return absl::InvalidArgumentError(
      absl::StrCat(file.path(), ": metadata '", key, "' is ", value, ", supported: ", supported));
}

absl::Status ReadDivisors(const GgufFile& file, RopeDescription& rope) {
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    if (file.FindTensor(name) == nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": tensor '", name,
                                                   "' asks for longrope, supported are linear, ",
                                                   "llama3 (rope_freqs.weight) and yarn"));
  }
  const TensorView* tensor = file.FindTensor("rope_freqs.weight");
  if (tensor == nullptr) return absl::OkStatus();
  if (tensor->shape.size() != 1 || tensor->shape[0] != rope.dim / 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": tensor 'rope_freqs.weight' has shape ",
                     ShapeText(tensor->shape), ", expected [", rope.dim / 2, "]"));
  }
  rope.divisors.resize(static_cast<size_t>(tensor->shape[0]));
  DequantizeRow(tensor->type, tensor->bytes, rope.divisors);
  return absl::OkStatus();
}

// Readers of these files multiply the attention factor that follows from `factor` by those stated.
absl::Status ReadYarn(const GgufFile& file, const std::string& prefix, int64_t context_length,
                      RopeDescription& rope) {
  TR_ASSIGN_OR_RETURN(rope.original_context,
                      file.GetIntOr(prefix + "original_context_length", context_length));
  TR_ASSIGN_OR_RETURN(rope.beta_fast, file.GetFloatOr(prefix + "yarn_beta_fast", 32));
  TR_ASSIGN_OR_RETURN(rope.beta_slow, file.GetFloatOr(prefix + "yarn_beta_slow", 1));
  TR_ASSIGN_OR_RETURN(const double attention, file.GetFloatOr(prefix + "attn_factor", 1));
  TR_ASSIGN_OR_RETURN(const double yarn, file.GetFloatOr(prefix + "yarn_attn_factor", 1));
  if (!(attention * yarn > 0)) {
    return UnsupportedKey(file, prefix + "attn_factor", absl::StrCat(attention * yarn),
                          "a positive number");
  }
  rope.attention_factor = attention * yarn * YarnAttentionFactor(rope.factor);
  // A negative share of extrapolation means the default, all of it.
  TR_ASSIGN_OR_RETURN(const double share, file.GetFloatOr(prefix + "yarn_ext_factor", 1));
  if (share >= 0 && share != 1) {
    return UnsupportedKey(file, prefix + "yarn_ext_factor", absl::StrCat(share), "1");
  }
  TR_ASSIGN_OR_RETURN(const double multiplier, file.GetFloatOr(prefix + "yarn_log_multiplier", 0));
  if (multiplier != 0) {
    return UnsupportedKey(file, prefix + "yarn_log_multiplier", absl::StrCat(multiplier), "0");
  }
  return absl::OkStatus();
}

absl::Status ReadScaling(const GgufFile& file, const std::string& prefix, int64_t context_length,
                         RopeDescription& rope) {
  const bool factor = file.Has(prefix + "factor");
  // A factor alone means linear.
  TR_ASSIGN_OR_RETURN(const std::string type,
                      file.GetStringOr(prefix + "type", factor ? "linear" : "none"));
  if (type == "none") return absl::OkStatus();
  if (type != "linear" && type != "yarn") {
    return UnsupportedKey(file, prefix + "type", absl::StrCat("'", type, "'"),
                          "none, linear, yarn; llama3 as tensor rope_freqs.weight");
  }
  rope.scaling = type == "yarn" ? RopeScaling::kYarn : RopeScaling::kLinear;
  TR_ASSIGN_OR_RETURN(rope.factor, file.GetFloat(prefix + "factor"));
  if (type == "yarn") return ReadYarn(file, prefix, context_length, rope);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGgufRope(const GgufFile& file, const std::string& prefix, int64_t context_length,
                          RopeDescription& rope) {
  TR_ASSIGN_OR_RETURN(rope.theta, file.GetFloatOr(prefix + "rope.freq_base", 10000.0));
  TR_ASSIGN_OR_RETURN(rope.dim, file.GetIntOr(prefix + "rope.dimension_count", rope.dim));
  TR_RETURN_IF_ERROR(ReadScaling(file, prefix + "rope.scaling.", context_length, rope));
  return ReadDivisors(file, rope);
}

}  // namespace tokenrouter
