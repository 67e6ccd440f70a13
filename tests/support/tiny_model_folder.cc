// The Hugging Face folder of a tiny model.
#include <boost/json.hpp>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tiny_tokenizer.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

std::string ModelType(const TinyModelSpec& spec) {
  return spec.sliding_window > 0 ? "mistral" : ArchitectureName(spec.architecture);
}

const char* ModelClass(const TinyModelSpec& spec) {
  if (spec.sliding_window > 0) return "MistralForCausalLM";
  switch (spec.architecture) {
    case Architecture::kLlama:
      return "LlamaForCausalLM";
    case Architecture::kQwen2:
      return "Qwen2ForCausalLM";
    case Architecture::kQwen3:
      return "Qwen3ForCausalLM";
  }
  return "";
}

// As files state it: absent values are the defaults.
json::value RopeScalingJson(const RopeDescription& rope) {
  json::object scaling{{"factor", rope.factor},
                       {"original_max_position_embeddings", rope.original_context}};
  switch (rope.scaling) {
    case RopeScaling::kNone:
      return nullptr;
    case RopeScaling::kLinear:
      scaling["rope_type"] = "linear";
      break;
    case RopeScaling::kLlama3:
      scaling["rope_type"] = "llama3";
      scaling["low_freq_factor"] = rope.low_frequency_factor;
      scaling["high_freq_factor"] = rope.high_frequency_factor;
      break;
    case RopeScaling::kYarn:
      scaling["rope_type"] = "yarn";
      if (rope.attention_factor == 0) break;
      scaling["attention_factor"] = rope.attention_factor;
      scaling["beta_fast"] = rope.beta_fast;
      scaling["beta_slow"] = rope.beta_slow;
  }
  return scaling;
}

std::string ConfigJson(const TinyModelSpec& spec, bool bf16) {
  const ModelDescription model = DescribeTiny(spec);
  json::object config({{"architectures", json::array{ModelClass(spec)}},
                       {"model_type", ModelType(spec)},
                       {"hidden_act", "silu"},
                       {"hidden_size", model.hidden},
                       {"intermediate_size", model.intermediate},
                       {"num_hidden_layers", model.layers},
                       {"num_attention_heads", model.heads},
                       {"num_key_value_heads", model.kv_heads},
                       {"head_dim", model.head_dim},
                       {"max_position_embeddings", model.context_length},
                       {"rms_norm_eps", model.rms_epsilon},
                       {"rope_theta", model.rope.theta},
                       {"rope_scaling", RopeScalingJson(model.rope)},
                       {"tie_word_embeddings", model.tied_embeddings},
                       {"vocab_size", model.vocab_rows},
                       {"pad_token_id", model.pad_id},
                       {"eos_token_id", kTinyImEnd},
                       {"torch_dtype", bf16 ? "bfloat16" : "float32"}});
  if (model.sliding_window > 0) config["sliding_window"] = model.sliding_window;
  return json::serialize(config);
}

std::string GenerationConfigJson() {
  return json::serialize(json::object{{"eos_token_id", json::array{kTinyImEnd, kTinyEndOfText}},
                                      {"pad_token_id", kTinyEndOfText}});
}

std::string Safetensors(const TinyModelSpec& spec, bool bf16) {
  json::object header;
  header["__metadata__"] = json::object{{"format", "pt"}};
  std::string data;
  for (const TinyTensor& tensor : TinyTensors(spec)) {
    const size_t begin = data.size();
    data += bf16 ? EncodeBf16(tensor.values) : EncodeF32(tensor.values);
    header[HfTensorName(tensor.role, tensor.layer)] =
        json::object{{"dtype", bf16 ? "BF16" : "F32"},
                     {"shape", json::array(tensor.shape.begin(), tensor.shape.end())},
                     {"data_offsets", json::array{begin, data.size()}}};
  }
  std::string text = json::serialize(header);
  while (text.size() % 8 != 0) text.push_back(' ');
  std::string file;
  for (size_t i = 0, size = text.size(); i < 8; ++i, size >>= 8) {
    file.push_back(static_cast<char>(size & 0xFF));
  }
  return file + text + data;
}

}  // namespace

absl::Status WriteTinyFolder(const TinyModelSpec& spec, bool bf16, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(folder, ": cannot be created: ", error.message()));
  }
  TR_RETURN_IF_ERROR(WriteTinyFile(folder + "/config.json", ConfigJson(spec, bf16)));
  TR_RETURN_IF_ERROR(WriteTinyFile(folder + "/generation_config.json", GenerationConfigJson()));
  TR_RETURN_IF_ERROR(WriteTinyFile(folder + "/tokenizer.json", TinyTokenizerJson()));
  TR_RETURN_IF_ERROR(WriteTinyFile(folder + "/tokenizer_config.json", TinyTokenizerConfigJson()));
  return WriteTinyFile(folder + "/model.safetensors", Safetensors(spec, bf16));
}

}  // namespace tokenrouter
