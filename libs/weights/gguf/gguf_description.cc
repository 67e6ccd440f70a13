#include "libs/weights/gguf/gguf_description.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/gguf/gguf_rope.h"

namespace tokenrouter {
namespace {

constexpr int64_t kControlToken = 3;  // Value of tokenizer.ggml.token_type.

// Files name one eos id, but chat models end an answer with any of these (Qwen2.5's own
// configuration lists two).
constexpr std::array<std::string_view, 6> kEndTokens = {
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>"};

absl::StatusOr<Architecture> ReadArchitecture(const GgufFile& file) {
  TR_ASSIGN_OR_RETURN(const int64_t parts, file.GetIntOr("split.count", 1));
  if (parts > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), ": metadata 'split.count' is ", parts,
                     ", supported are whole files: merge the parts into one"));
  }
  TR_ASSIGN_OR_RETURN(const std::string name, file.GetString("general.architecture"));
  if (name == "llama") return Architecture::kLlama;
  if (name == "qwen2") return Architecture::kQwen2;
  if (name == "qwen3") return Architecture::kQwen3;
  return absl::InvalidArgumentError(absl::StrCat(file.path(),
                                                 ": metadata 'general.architecture' is '", name,
                                                 "', supported are llama, qwen2 and qwen3"));
}

// Only files of Mistral models, whose architecture is llama, mean by it a window in every layer.
absl::Status ReadWindow(const GgufFile& file, const std::string& prefix, ModelDescription& model) {
  if (model.architecture != Architecture::kLlama) return absl::OkStatus();
  const std::string key = prefix + "attention.sliding_window";
  TR_ASSIGN_OR_RETURN(model.sliding_window, file.GetIntOr(key, 0));
  if (!file.Has(key + "_pattern")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ": metadata '", key,
                                                 "_pattern' is set, supported is one window ",
                                                 "for all layers"));
}

absl::Status ReadSizes(const GgufFile& file, const std::string& prefix, ModelDescription& model) {
  TR_ASSIGN_OR_RETURN(model.layers, file.GetInt(prefix + "block_count"));
  TR_ASSIGN_OR_RETURN(model.hidden, file.GetInt(prefix + "embedding_length"));
  TR_ASSIGN_OR_RETURN(model.intermediate, file.GetInt(prefix + "feed_forward_length"));
  TR_ASSIGN_OR_RETURN(model.heads, file.GetInt(prefix + "attention.head_count"));
  TR_ASSIGN_OR_RETURN(model.kv_heads,
                      file.GetIntOr(prefix + "attention.head_count_kv", model.heads));
  TR_ASSIGN_OR_RETURN(model.context_length, file.GetInt(prefix + "context_length"));
  TR_ASSIGN_OR_RETURN(model.rms_epsilon,
                      file.GetFloat(prefix + "attention.layer_norm_rms_epsilon"));
  const int64_t even_split = model.heads > 0 ? model.hidden / model.heads : 0;
  TR_ASSIGN_OR_RETURN(model.head_dim, file.GetIntOr(prefix + "attention.key_length", even_split));
  TR_ASSIGN_OR_RETURN(const int64_t value_length,
                      file.GetIntOr(prefix + "attention.value_length", model.head_dim));
  if (value_length != model.head_dim) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": metadata '", prefix,
                                                   "attention.value_length' is ", value_length,
                                                   ", expected the key length ", model.head_dim));
  }
  TR_ASSIGN_OR_RETURN(const int64_t experts, file.GetIntOr(prefix + "expert_count", 0));
  if (experts != 0) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": metadata '", prefix,
                                                   "expert_count' is ", experts,
                                                   ", models with experts are not supported"));
  }
  const TensorView* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr) {
    return absl::NotFoundError(absl::StrCat(file.path(), ": no tensor 'token_embd.weight'"));
  }
  model.vocab_rows = embedding->rows();
  return absl::OkStatus();
}

void AddEos(int64_t id, ModelDescription& model) {
  if (id < 0 || id >= model.vocab_rows) return;
  if (std::find(model.eos_ids.begin(), model.eos_ids.end(), id) == model.eos_ids.end()) {
    model.eos_ids.push_back(id);
  }
}

absl::Status ReadSpecialIds(const GgufFile& file, ModelDescription& model) {
  TR_ASSIGN_OR_RETURN(model.bos_id, file.GetIntOr("tokenizer.ggml.bos_token_id", -1));
  TR_ASSIGN_OR_RETURN(model.pad_id, file.GetIntOr("tokenizer.ggml.padding_token_id", -1));
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    TR_ASSIGN_OR_RETURN(const int64_t id, file.GetIntOr(key, -1));
    AddEos(id, model);
  }
  if (!file.Has("tokenizer.ggml.tokens") || !file.Has("tokenizer.ggml.token_type")) {
    return absl::OkStatus();
  }
  TR_ASSIGN_OR_RETURN(const auto tokens, file.GetStrings("tokenizer.ggml.tokens"));
  TR_ASSIGN_OR_RETURN(const auto types, file.GetInts("tokenizer.ggml.token_type"));
  for (size_t id = 0; id < std::min(tokens.size(), types.size()); ++id) {
    if (types[id] != kControlToken) continue;
    if (std::find(kEndTokens.begin(), kEndTokens.end(), tokens[id]) != kEndTokens.end()) {
      AddEos(static_cast<int64_t>(id), model);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelDescription> DescribeGguf(const GgufFile& file) {
  ModelDescription model;
  TR_ASSIGN_OR_RETURN(model.architecture, ReadArchitecture(file));
  const std::string prefix = ArchitectureName(model.architecture) + ".";
  TR_ASSIGN_OR_RETURN(model.name, file.GetStringOr("general.name", file.path()));
  TR_RETURN_IF_ERROR(ReadSizes(file, prefix, model));
  TR_RETURN_IF_ERROR(ReadWindow(file, prefix, model));
  model.rope.dim = model.head_dim;
  TR_RETURN_IF_ERROR(ReadGgufRope(file, prefix, model.context_length, model.rope));
  model.context_length = std::max(model.context_length, StretchedContext(model.rope));
  TR_RETURN_IF_ERROR(ReadSpecialIds(file, model));
  model.tied_embeddings = file.FindTensor("output.weight") == nullptr;
  model.qkv_bias = file.FindTensor("blk.0.attn_q.bias") != nullptr;
  model.qk_norm = model.architecture == Architecture::kQwen3;
  model.output_bias = file.FindTensor("blk.0.attn_output.bias") != nullptr;
  TR_RETURN_IF_ERROR(ValidateDescription(model, file.path()));
  return model;
}

}  // namespace tokenrouter
