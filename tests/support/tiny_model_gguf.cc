// The GGUF file of a tiny model.
#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/testing/gguf_test_bytes.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tiny_tokenizer.h"

namespace tokenrouter {
namespace {

// Type tags of the format.
constexpr uint32_t kU32 = 4;
constexpr uint32_t kI32 = 5;
constexpr uint32_t kF32 = 6;
constexpr uint32_t kBool = 7;
constexpr uint32_t kString = 8;

constexpr int32_t kNormalToken = 1;
constexpr int32_t kControlToken = 3;
constexpr int32_t kUnusedToken = 5;

constexpr size_t kAlignment = 32;
constexpr uint64_t kMetadataKeys = 23;
constexpr uint64_t kYarnKeys = 5;

// Rows of queries and keys of llama files alternate between the two halves of a head.
std::vector<float> Interleaved(const TinyTensor& tensor, int64_t head_dim) {
  const int64_t columns = tensor.shape.back();
  const int64_t rows = tensor.shape[0];
  std::vector<float> stored(tensor.values.size());
  for (int64_t head = 0; head < rows / head_dim; ++head) {
    for (int64_t pair = 0; pair < head_dim / 2; ++pair) {
      for (int64_t half = 0; half < 2; ++half) {
        const int64_t from = head * head_dim + half * (head_dim / 2) + pair;
        const int64_t to = head * head_dim + 2 * pair + half;
        std::copy_n(tensor.values.begin() + from * columns, columns, stored.begin() + to * columns);
      }
    }
  }
  return stored;
}

void PutArchitecture(const TinyModelSpec& spec, GgufBytes& file) {
  const ModelDescription model = DescribeTiny(spec);
  const std::string architecture = ArchitectureName(spec.architecture);
  const auto count = [&](const char* key, int64_t value) {
    file.Scalar<uint32_t>(absl::StrCat(architecture, ".", key), kU32, static_cast<uint32_t>(value));
  };
  file.String("general.architecture", architecture).String("general.name", model.name);
  count("block_count", model.layers);
  count("context_length", model.context_length);
  count("embedding_length", model.hidden);
  count("feed_forward_length", model.intermediate);
  count("attention.head_count", model.heads);
  count("attention.head_count_kv", model.kv_heads);
  count("attention.key_length", model.head_dim);
  count("vocab_size", model.vocab_rows);
  count("attention.sliding_window", model.sliding_window);
  file.Scalar<float>(architecture + ".attention.layer_norm_rms_epsilon", kF32,
                     static_cast<float>(model.rms_epsilon));
}

// Llama3's scaling is no metadata but a tensor: what each frequency is divided by.
std::vector<float> RopeDivisors(const ModelDescription& model) {
  if (model.rope.scaling != RopeScaling::kLlama3) return {};
  RopeDescription plain = model.rope;
  plain.scaling = RopeScaling::kNone;
  const std::vector<double> from = RopeFrequencies(plain), to = RopeFrequencies(model.rope);
  std::vector<float> divisors;
  for (size_t i = 0; i < to.size(); ++i) divisors.push_back(static_cast<float>(from[i] / to[i]));
  return divisors;
}

void PutRope(const ModelDescription& model, GgufBytes& file) {
  const RopeDescription& rope = model.rope;
  const std::string prefix = ArchitectureName(model.architecture) + ".rope.";
  const auto number = [&](const char* key, double value) {
    file.Scalar<float>(prefix + key, kF32, static_cast<float>(value));
  };
  number("freq_base", rope.theta);
  const bool yarn = rope.scaling == RopeScaling::kYarn;
  file.String(prefix + "scaling.type", yarn ? "yarn" : "none");
  if (!yarn) return;
  number("scaling.factor", rope.factor);
  file.Scalar<uint32_t>(prefix + "scaling.original_context_length", kU32,
                        static_cast<uint32_t>(rope.original_context));
  number("scaling.yarn_beta_fast", rope.beta_fast);
  number("scaling.yarn_beta_slow", rope.beta_slow);
  number("scaling.attn_factor", RopeAttentionFactor(rope) / YarnAttentionFactor(rope.factor));
}

void PutTokenizer(const TinyModelSpec& spec, GgufBytes& file) {
  const std::vector<std::string> tokens = TinyTokens();
  const auto rows = static_cast<size_t>(spec.vocab_rows);
  file.String("tokenizer.ggml.model", "gpt2").String("tokenizer.ggml.pre", "qwen2");
  file.Array("tokenizer.ggml.tokens", kString, rows);
  for (size_t id = 0; id < rows; ++id) {
    file.Text(id < tokens.size() ? tokens[id] : absl::StrCat("[PAD", id, "]"));
  }
  file.Array("tokenizer.ggml.token_type", kI32, rows);
  for (size_t id = 0; id < rows; ++id) {
    const int32_t special = id < tokens.size() ? kControlToken : kUnusedToken;
    file.Put<int32_t>(id < 256 ? kNormalToken : special);
  }
  file.Array("tokenizer.ggml.merges", kString, 0);
  file.Scalar<uint32_t>("tokenizer.ggml.eos_token_id", kU32, kTinyImEnd);
  file.Scalar<uint32_t>("tokenizer.ggml.padding_token_id", kU32, kTinyEndOfText);
  file.Scalar<uint8_t>("tokenizer.ggml.add_bos_token", kBool, 0);
  file.String("tokenizer.chat_template", TinyChatTemplate());
}

}  // namespace

absl::Status WriteTinyGguf(const TinyModelSpec& spec, bool f16, const std::string& path) {
  const std::vector<TinyTensor> tensors = TinyTensors(spec);
  const ModelDescription model = DescribeTiny(spec);
  const std::vector<float> divisors = RopeDivisors(model);
  const bool yarn = model.rope.scaling == RopeScaling::kYarn;
  GgufBytes file;
  file.Header(tensors.size() + (divisors.empty() ? 0 : 1), kMetadataKeys + (yarn ? kYarnKeys : 0));
  PutArchitecture(spec, file);
  PutRope(model, file);
  PutTokenizer(spec, file);
  std::string data;
  for (const TinyTensor& tensor : tensors) {
    // As converters do, vectors stay F32.
    const bool half = f16 && tensor.shape.size() > 1;
    const bool permuted = spec.architecture == Architecture::kLlama &&
                          (tensor.role == TensorRole::kQuery || tensor.role == TensorRole::kKey);
    const std::vector<float> values =
        permuted ? Interleaved(tensor, model.head_dim) : tensor.values;
    const std::vector<uint64_t> dimensions(tensor.shape.rbegin(), tensor.shape.rend());
    file.Tensor(GgufTensorName(tensor.role, tensor.layer), dimensions, half ? 1 : 0, data.size());
    data += half ? EncodeF16(values) : EncodeF32(values);
    data.resize((data.size() + kAlignment - 1) / kAlignment * kAlignment);
  }
  if (!divisors.empty()) {
    file.Tensor("rope_freqs.weight", {divisors.size()}, 0, data.size());
    data += EncodeF32(divisors);
    data.resize((data.size() + kAlignment - 1) / kAlignment * kAlignment);
  }
  file.PadTo(kAlignment);
  const std::span<const std::byte> header = file.bytes();
  return WriteTinyFile(
      path, std::string(reinterpret_cast<const char*>(header.data()), header.size()) + data);
}

}  // namespace tokenrouter
