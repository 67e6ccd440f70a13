#include "libs/weights/hugging_face/hf_rope.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/json_fields.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr const char* kOriginalContext = "original_max_position_embeddings";

// A head is rotated as a whole, in every layer alike.
absl::Status CheckWhole(const json::object& object, const std::string& where) {
  TR_ASSIGN_OR_RETURN(const double share, JsonFloatOr(object, "partial_rotary_factor", 1, where));
  if (share != 1) {
    return UnsupportedField(where, "partial_rotary_factor", absl::StrCat(share), "1");
  }
  if (FindJson(object, "mrope_section") != nullptr) {
    return UnsupportedField(where, "mrope_section", "set", "absent");
  }
  return absl::OkStatus();
}

absl::Status ReadLlama3(const json::object& scaling, const std::string& where,
                        RopeDescription& rope) {
  rope.scaling = RopeScaling::kLlama3;
  TR_ASSIGN_OR_RETURN(rope.original_context, JsonInt(scaling, kOriginalContext, where));
  TR_ASSIGN_OR_RETURN(rope.low_frequency_factor, JsonFloat(scaling, "low_freq_factor", where));
  TR_ASSIGN_OR_RETURN(rope.high_frequency_factor, JsonFloat(scaling, "high_freq_factor", where));
  return absl::OkStatus();
}

absl::Status ReadYarn(const json::object& scaling, const std::string& where, int64_t context_length,
                      RopeDescription& rope) {
  rope.scaling = RopeScaling::kYarn;
  TR_ASSIGN_OR_RETURN(rope.original_context,
                      JsonIntOr(scaling, kOriginalContext, context_length, where));
  TR_ASSIGN_OR_RETURN(rope.beta_fast, JsonFloatOr(scaling, "beta_fast", 32, where));
  TR_ASSIGN_OR_RETURN(rope.beta_slow, JsonFloatOr(scaling, "beta_slow", 1, where));
  TR_ASSIGN_OR_RETURN(rope.attention_factor, JsonFloatOr(scaling, "attention_factor", 0, where));
  TR_ASSIGN_OR_RETURN(const double weight, JsonFloatOr(scaling, "mscale", 0, where));
  TR_ASSIGN_OR_RETURN(const double all, JsonFloatOr(scaling, "mscale_all_dim", 0, where));
  if (rope.attention_factor == 0 && weight != 0 && all != 0) {
    rope.attention_factor =
        YarnAttentionFactor(rope.factor, weight) / YarnAttentionFactor(rope.factor, all);
  }
  TR_ASSIGN_OR_RETURN(const bool truncate, JsonBoolOr(scaling, "truncate", true, where));
  if (!truncate) return UnsupportedField(where, "truncate", "false", "true");
  return absl::OkStatus();
}

absl::Status ReadScaling(const json::object& scaling, const std::string& where,
                         int64_t context_length, RopeDescription& rope) {
  TR_RETURN_IF_ERROR(CheckWhole(scaling, where));
  // The field was called "type" before it was called "rope_type".
  const char* type_field = FindJson(scaling, "rope_type") != nullptr ? "rope_type" : "type";
  if (FindJson(scaling, type_field) == nullptr) return absl::OkStatus();
  TR_ASSIGN_OR_RETURN(const std::string type, JsonString(scaling, type_field, where));
  if (type == "default") return absl::OkStatus();
  if (type != "linear" && type != "llama3" && type != "yarn") {
    return UnsupportedField(where, type_field, absl::StrCat("'", type, "'"),
                            "default, linear, llama3, yarn");
  }
  TR_ASSIGN_OR_RETURN(rope.factor, JsonFloat(scaling, "factor", where));
  if (type == "llama3") return ReadLlama3(scaling, where, rope);
  if (type == "yarn") return ReadYarn(scaling, where, context_length, rope);
  rope.scaling = RopeScaling::kLinear;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadHfRope(const json::object& config, const std::string& where,
                        int64_t context_length, RopeDescription& rope) {
  TR_RETURN_IF_ERROR(CheckWhole(config, where));
  TR_ASSIGN_OR_RETURN(rope.theta, JsonFloatOr(config, "rope_theta", 10000.0, where));
  for (const char* field : {"rope_scaling", "rope_parameters"}) {
    const json::value* value = FindJson(config, field);
    if (value == nullptr) continue;
    const json::object* scaling = value->if_object();
    if (scaling == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": '", field, "' is no object"));
    }
    const bool per_layer_type =
        std::any_of(scaling->begin(), scaling->end(),
                    [](const auto& entry) { return entry.value().is_object(); });
    if (per_layer_type) {
      return UnsupportedField(where, field, "one object per layer type", "one for all layers");
    }
    TR_ASSIGN_OR_RETURN(rope.theta, JsonFloatOr(*scaling, "rope_theta", rope.theta, where));
    return ReadScaling(*scaling, absl::StrCat(where, ": ", field), context_length, rope);
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
