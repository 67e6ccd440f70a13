#include "libs/weights/description/tensor_names.h"

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

struct RoleNames {
  TensorRole role;
  const char* gguf;
  const char* hf;
};

// For roles of a layer, what stands after "blk.<i>." and "model.layers.<i>.".
constexpr RoleNames kNames[] = {
    {TensorRole::kTokenEmbedding, "token_embd.weight", "model.embed_tokens.weight"},
    {TensorRole::kOutputNorm, "output_norm.weight", "model.norm.weight"},
    {TensorRole::kOutput, "output.weight", "lm_head.weight"},
    {TensorRole::kAttentionNorm, "attn_norm.weight", "input_layernorm.weight"},
    {TensorRole::kQuery, "attn_q.weight", "self_attn.q_proj.weight"},
    {TensorRole::kKey, "attn_k.weight", "self_attn.k_proj.weight"},
    {TensorRole::kValue, "attn_v.weight", "self_attn.v_proj.weight"},
    {TensorRole::kQueryBias, "attn_q.bias", "self_attn.q_proj.bias"},
    {TensorRole::kKeyBias, "attn_k.bias", "self_attn.k_proj.bias"},
    {TensorRole::kValueBias, "attn_v.bias", "self_attn.v_proj.bias"},
    {TensorRole::kAttentionOutput, "attn_output.weight", "self_attn.o_proj.weight"},
    {TensorRole::kAttentionOutputBias, "attn_output.bias", "self_attn.o_proj.bias"},
    {TensorRole::kFeedForwardNorm, "ffn_norm.weight", "post_attention_layernorm.weight"},
    {TensorRole::kGate, "ffn_gate.weight", "mlp.gate_proj.weight"},
    {TensorRole::kUp, "ffn_up.weight", "mlp.up_proj.weight"},
    {TensorRole::kDown, "ffn_down.weight", "mlp.down_proj.weight"},
    {TensorRole::kQueryNorm, "attn_q_norm.weight", "self_attn.q_norm.weight"},
    {TensorRole::kKeyNorm, "attn_k_norm.weight", "self_attn.k_norm.weight"},
};

const RoleNames& NamesOf(TensorRole role) {
  const RoleNames& names = kNames[static_cast<size_t>(role)];
  TR_CHECK(names.role == role) << "the table is in the order of the roles";
  return names;
}

}  // namespace

bool IsLayerRole(TensorRole role) { return role > TensorRole::kOutput; }

std::string GgufTensorName(TensorRole role, int64_t layer) {
  const char* name = NamesOf(role).gguf;
  return IsLayerRole(role) ? absl::StrCat("blk.", layer, ".", name) : name;
}

std::string HfTensorName(TensorRole role, int64_t layer) {
  const char* name = NamesOf(role).hf;
  return IsLayerRole(role) ? absl::StrCat("model.layers.", layer, ".", name) : name;
}

std::vector<int64_t> ExpectedShape(TensorRole role, const ModelDescription& model) {
  const int64_t query = model.heads * model.head_dim;
  const int64_t key = model.kv_heads * model.head_dim;
  switch (role) {
    case TensorRole::kTokenEmbedding:
    case TensorRole::kOutput:
      return {model.vocab_rows, model.hidden};
    case TensorRole::kOutputNorm:
    case TensorRole::kAttentionNorm:
    case TensorRole::kFeedForwardNorm:
    case TensorRole::kAttentionOutputBias:
      return {model.hidden};
    case TensorRole::kQuery:
      return {query, model.hidden};
    case TensorRole::kKey:
    case TensorRole::kValue:
      return {key, model.hidden};
    case TensorRole::kQueryBias:
      return {query};
    case TensorRole::kKeyBias:
    case TensorRole::kValueBias:
      return {key};
    case TensorRole::kAttentionOutput:
      return {model.hidden, query};
    case TensorRole::kGate:
    case TensorRole::kUp:
      return {model.intermediate, model.hidden};
    case TensorRole::kDown:
      return {model.hidden, model.intermediate};
    case TensorRole::kQueryNorm:
    case TensorRole::kKeyNorm:
      return {model.head_dim};
  }
  TR_CHECK(false) << "tensor role " << static_cast<int>(role);
  return {};
}

std::vector<TensorRole> RolesOf(const ModelDescription& model) {
  std::vector<TensorRole> roles;
  for (const RoleNames& names : kNames) {
    const bool qkv_bias = names.role == TensorRole::kQueryBias ||
                          names.role == TensorRole::kKeyBias ||
                          names.role == TensorRole::kValueBias;
    const bool qk_norm = names.role == TensorRole::kQueryNorm || names.role == TensorRole::kKeyNorm;
    if (qkv_bias && !model.qkv_bias) continue;
    if (qk_norm && !model.qk_norm) continue;
    if (names.role == TensorRole::kAttentionOutputBias && !model.output_bias) continue;
    if (names.role == TensorRole::kOutput && model.tied_embeddings) continue;
    roles.push_back(names.role);
  }
  return roles;
}

}  // namespace tokenrouter
