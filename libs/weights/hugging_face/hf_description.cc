#include "libs/weights/hugging_face/hf_description.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/json_fields.h"
#include "libs/weights/file/mapped_file.h"
#include "libs/weights/hugging_face/hf_rope.h"
#include "libs/weights/hugging_face/hf_window.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int64_t kQwen3HeadDim = 128;

// Quantized checkpoints store other tensors than those that RolesOf lists.
absl::Status RefuseQuantization(const json::object& config, const std::string& where) {
  constexpr const char* kField = "quantization_config";
  const json::value* value = FindJson(config, kField);
  if (value == nullptr) return absl::OkStatus();
  std::string method = "set";
  if (const json::object* object = value->if_object()) {
    if (FindJson(*object, "quant_method") != nullptr) {
      TR_ASSIGN_OR_RETURN(method, JsonString(*object, "quant_method", where));
    }
  }
  return UnsupportedField(where, kField, method,
                          "absent; weights are F32, F16 or BF16 and quantized while loading");
}

// Classifiers and bare encoders share the model types but have no output matrix.
absl::Status RequireLanguageModel(const json::object& config, const std::string& where) {
  TR_ASSIGN_OR_RETURN(const std::vector<std::string> classes,
                      JsonStrings(config, "architectures", where));
  for (const std::string& name : classes) {
    if (name.ends_with("ForCausalLM")) continue;
    return UnsupportedField(where, "architectures", absl::StrCat("'", name, "'"), "...ForCausalLM");
  }
  return absl::OkStatus();
}

absl::Status ReadArchitecture(const json::object& config, const std::string& where,
                              ModelDescription& model) {
  TR_ASSIGN_OR_RETURN(const std::string type, JsonString(config, "model_type", where));
  if (type == "llama" || type == "mistral") {
    model.architecture = Architecture::kLlama;
  } else if (type == "qwen2") {
    model.architecture = Architecture::kQwen2;
  } else if (type == "qwen3") {
    model.architecture = Architecture::kQwen3;
  } else {
    return UnsupportedField(where, "model_type", absl::StrCat("'", type, "'"),
                            "llama, mistral, qwen2, qwen3");
  }
  if (FindJson(config, "hidden_act") != nullptr) {
    TR_ASSIGN_OR_RETURN(const std::string activation, JsonString(config, "hidden_act", where));
    if (activation != "silu") {
      return UnsupportedField(where, "hidden_act", absl::StrCat("'", activation, "'"), "'silu'");
    }
  }
  TR_ASSIGN_OR_RETURN(const bool mlp_bias, JsonBoolOr(config, "mlp_bias", false, where));
  if (mlp_bias) return UnsupportedField(where, "mlp_bias", "true", "false");
  TR_RETURN_IF_ERROR(RefuseQuantization(config, where));
  return RequireLanguageModel(config, where);
}

absl::Status ReadSizes(const json::object& config, const std::string& where,
                       ModelDescription& model) {
  TR_ASSIGN_OR_RETURN(model.layers, JsonInt(config, "num_hidden_layers", where));
  TR_ASSIGN_OR_RETURN(model.hidden, JsonInt(config, "hidden_size", where));
  TR_ASSIGN_OR_RETURN(model.intermediate, JsonInt(config, "intermediate_size", where));
  TR_ASSIGN_OR_RETURN(model.heads, JsonInt(config, "num_attention_heads", where));
  TR_ASSIGN_OR_RETURN(model.kv_heads, JsonIntOr(config, "num_key_value_heads", model.heads, where));
  // The library that wrote the file uses this value for an absent head_dim.
  int64_t default_head_dim = model.heads > 0 ? model.hidden / model.heads : 0;
  if (model.architecture == Architecture::kQwen3) default_head_dim = kQwen3HeadDim;
  TR_ASSIGN_OR_RETURN(model.head_dim, JsonIntOr(config, "head_dim", default_head_dim, where));
  TR_ASSIGN_OR_RETURN(model.vocab_rows, JsonInt(config, "vocab_size", where));
  TR_ASSIGN_OR_RETURN(model.context_length, JsonInt(config, "max_position_embeddings", where));
  TR_ASSIGN_OR_RETURN(model.rms_epsilon, JsonFloatOr(config, "rms_norm_eps", 1e-6, where));
  TR_ASSIGN_OR_RETURN(model.tied_embeddings,
                      JsonBoolOr(config, "tie_word_embeddings", false, where));
  const bool qwen2 = model.architecture == Architecture::kQwen2;
  TR_ASSIGN_OR_RETURN(const bool bias, JsonBoolOr(config, "attention_bias", false, where));
  model.qkv_bias = qwen2 || bias;
  model.output_bias = !qwen2 && bias;
  model.qk_norm = model.architecture == Architecture::kQwen3;
  return absl::OkStatus();
}

absl::Status ReadSpecialIds(const json::object& config, const std::string& where,
                            ModelDescription& model) {
  TR_ASSIGN_OR_RETURN(model.bos_id, JsonIntOr(config, "bos_token_id", model.bos_id, where));
  TR_ASSIGN_OR_RETURN(model.pad_id, JsonIntOr(config, "pad_token_id", model.pad_id, where));
  TR_ASSIGN_OR_RETURN(std::vector<int64_t> eos, JsonInts(config, "eos_token_id", where));
  if (!eos.empty()) model.eos_ids = std::move(eos);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelDescription> DescribeHf(std::span<const std::byte> config_bytes,
                                            std::optional<std::span<const std::byte>> generation,
                                            const std::string& folder) {
  const std::string where = folder + "/config.json";
  TR_ASSIGN_OR_RETURN(const json::object config, ParseJsonObject(config_bytes, where));
  ModelDescription model;
  const std::filesystem::path clean = std::filesystem::path(folder + "/").parent_path();
  model.name = clean.filename().string();
  TR_RETURN_IF_ERROR(ReadArchitecture(config, where, model));
  TR_RETURN_IF_ERROR(ReadSizes(config, where, model));
  TR_ASSIGN_OR_RETURN(const std::string type, JsonString(config, "model_type", where));
  TR_ASSIGN_OR_RETURN(model.sliding_window, ReadHfWindow(config, type, model.layers, where));
  model.rope.dim = model.head_dim;
  TR_RETURN_IF_ERROR(ReadHfRope(config, where, model.context_length, model.rope));
  model.context_length = std::max(model.context_length, StretchedContext(model.rope));
  TR_RETURN_IF_ERROR(ReadSpecialIds(config, where, model));
  if (generation.has_value()) {
    const std::string path = folder + "/generation_config.json";
    TR_ASSIGN_OR_RETURN(const json::object fields, ParseJsonObject(*generation, path));
    TR_RETURN_IF_ERROR(ReadSpecialIds(fields, path, model));
  }
  TR_RETURN_IF_ERROR(ValidateDescription(model, where));
  return model;
}

absl::StatusOr<ModelDescription> DescribeHfFolder(const std::string& folder) {
  TR_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> config,
                      MappedFile::Open(folder + "/config.json"));
  const auto generation = MappedFile::Open(folder + "/generation_config.json");
  if (generation.ok()) return DescribeHf(config->bytes(), (*generation)->bytes(), folder);
  if (!absl::IsNotFound(generation.status())) return generation.status();
  return DescribeHf(config->bytes(), std::nullopt, folder);
}

}  // namespace tokenrouter
