#include "tests/support/tiny_model.h"

#include <bit>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "tests/support/tiny_tokenizer.h"

namespace tokenrouter {
namespace {

// Channels of the residual stream whose size differs widely between tokens and that the last norm
// drops: they take a varying share of the norm and so make a model's confidence vary.
constexpr int64_t kConfidenceChannels = 2;
constexpr float kConfidence = 0.9F;
constexpr float kEmbeddingSpread = 6.0F;  // Norm of an embedding, confidence channels aside.
constexpr float kLogitSpread = 11.0F;     // Standard deviation of a logit at full confidence.
constexpr float kQueryKeyGain = 2.0F;
constexpr float kSpecialGain = 0.25F;  // Special tokens are rarely chosen.
constexpr float kPaddingGain = 1.5F;

uint64_t Mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// About normal, mean 0, variance 1: the sum of four uniform 16-bit numbers. Integers and one
// multiplication, so the result is the same on every machine.
float Noise(uint64_t key, uint64_t index) {
  const uint64_t bits = Mix(key ^ Mix(index));
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int>(bits >> (16 * i) & 0xFFFF);
  return static_cast<float>(sum - 131070) * (1.0F / 37837.0F);
}

// Rounds to eight bits of fraction and drops what half precision has no normal number for.
float Rounded(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const float rounded = std::bit_cast<float>((bits + 0x8000) & 0xFFFF0000);
  return rounded < 0x1p-14F && rounded > -0x1p-14F ? 0.0F : rounded;
}

float InverseRoot(int64_t n) {
  // Newton's iteration instead of a library function, for equal results everywhere.
  double root = 1;
  for (int i = 0; i < 40; ++i) root = 0.5 * (root + static_cast<double>(n) / root);
  return static_cast<float>(1 / root);
}

float Gain(TensorRole role, const TinyModelSpec& spec) {
  switch (role) {
    case TensorRole::kTokenEmbedding:
      return kEmbeddingSpread * InverseRoot(spec.hidden);
    case TensorRole::kOutput:
      return kLogitSpread * InverseRoot(spec.hidden);
    case TensorRole::kQuery:
    case TensorRole::kKey:
      return kQueryKeyGain * InverseRoot(spec.hidden);
    case TensorRole::kQueryBias:
    case TensorRole::kKeyBias:
    case TensorRole::kValueBias:
      return 0.3F;
    case TensorRole::kAttentionOutput:
      return InverseRoot(spec.hidden);
    case TensorRole::kDown:
      return 2.0F * InverseRoot(spec.intermediate);
    default:
      return InverseRoot(spec.hidden);
  }
}

bool IsNorm(TensorRole role) {
  return role == TensorRole::kOutputNorm || role == TensorRole::kAttentionNorm ||
         role == TensorRole::kFeedForwardNorm || role == TensorRole::kQueryNorm ||
         role == TensorRole::kKeyNorm;
}

float RowGain(TensorRole role, int64_t row) {
  if (role != TensorRole::kTokenEmbedding && role != TensorRole::kOutput) return 1;
  if (row >= kTinyTokenizerSize) return kPaddingGain;
  return row >= kTinyEndOfText ? kSpecialGain : 1;
}

TinyTensor MakeTensor(TensorRole role, int64_t layer, const TinyModelSpec& spec,
                      const ModelDescription& model) {
  TinyTensor tensor{role, layer, ExpectedShape(role, model), {}};
  const int64_t columns = tensor.shape.back();
  const int64_t rows = tensor.shape.size() == 1 ? 1 : tensor.shape[0];
  const uint64_t key =
      Mix(spec.seed * 0x10001 + static_cast<uint64_t>(role) * 4096 + static_cast<uint64_t>(layer));
  const float gain = Gain(role, spec);
  tensor.values.reserve(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    const float scale = gain * RowGain(role, row);
    for (int64_t column = 0; column < columns; ++column) {
      const float noise = Noise(key, static_cast<uint64_t>(row * columns + column));
      float value = noise * scale;
      if (IsNorm(role)) value = 1 + noise / 8;
      if (column < kConfidenceChannels) {
        if (role == TensorRole::kOutputNorm) value = 0;
        if (role == TensorRole::kTokenEmbedding) {
          value = noise * noise * noise * (kEmbeddingSpread * kConfidence);
        }
      }
      tensor.values.push_back(Rounded(value));
    }
  }
  return tensor;
}

}  // namespace

TinyModelSpec TinySmall(Architecture architecture, uint64_t seed) {
  TinyModelSpec spec;
  spec.architecture = architecture;
  spec.seed = seed;
  return spec;
}

TinyModelSpec TinyLarge(Architecture architecture, uint64_t seed) {
  TinyModelSpec spec = TinySmall(architecture, seed);
  spec.layers = 3;
  spec.hidden = 128;
  spec.intermediate = 256;
  spec.heads = 4;
  spec.kv_heads = 2;
  return spec;
}

absl::Status CheckTinySpec(const TinyModelSpec& spec) {
  if (spec.hidden % 64 != 0 || spec.heads <= 0 || spec.hidden % spec.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tiny model: hidden ", spec.hidden, " with ", spec.heads,
                     " heads, expected a multiple of 64 and of them"));
  }
  if (spec.vocab_rows < kTinyTokenizerSize) {
    return absl::InvalidArgumentError(absl::StrCat("tiny model: ", spec.vocab_rows,
                                                   " vocabulary rows, the tokenizer needs ",
                                                   kTinyTokenizerSize));
  }
  return ValidateDescription(DescribeTiny(spec), "tiny model");
}

ModelDescription DescribeTiny(const TinyModelSpec& spec) {
  ModelDescription model;
  model.name =
      absl::StrCat("tiny-", ArchitectureName(spec.architecture), "-", spec.hidden, "-", spec.seed);
  model.architecture = spec.architecture;
  model.layers = spec.layers;
  model.hidden = spec.hidden;
  model.intermediate = spec.intermediate;
  model.heads = spec.heads;
  model.kv_heads = spec.kv_heads;
  model.head_dim = spec.head_dim > 0 ? spec.head_dim : spec.hidden / spec.heads;
  model.vocab_rows = spec.vocab_rows;
  model.context_length = spec.context_length;
  model.sliding_window = spec.sliding_window;
  model.rms_epsilon = 1e-5;
  model.rope = spec.rope;
  model.rope.dim = model.head_dim;
  model.tied_embeddings = spec.tied_embeddings;
  model.qkv_bias = spec.architecture == Architecture::kQwen2;
  model.qk_norm = spec.architecture == Architecture::kQwen3;
  model.pad_id = kTinyEndOfText;
  model.eos_ids = {kTinyImEnd, kTinyEndOfText};
  return model;
}

std::vector<TinyTensor> TinyTensors(const TinyModelSpec& spec) {
  const ModelDescription model = DescribeTiny(spec);
  std::vector<TinyTensor> tensors;
  for (const TensorRole role : RolesOf(model)) {
    const int64_t count = IsLayerRole(role) ? spec.layers : 1;
    for (int64_t layer = 0; layer < count; ++layer) {
      tensors.push_back(MakeTensor(role, layer, spec, model));
    }
  }
  return tensors;
}

std::string EncodeF32(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

std::string EncodeBf16(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    bytes.push_back(static_cast<char>(bits >> 16 & 0xFF));
    bytes.push_back(static_cast<char>(bits >> 24));
  }
  return bytes;
}

std::string EncodeF16(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    // The exponent's bias shrinks from 127 to 15; zero stays zero.
    const uint32_t half = sign | (magnitude == 0 ? 0 : (magnitude - (112U << 23)) >> 13);
    bytes.push_back(static_cast<char>(half & 0xFF));
    bytes.push_back(static_cast<char>(half >> 8));
  }
  return bytes;
}

absl::Status WriteTinyFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
}

absl::Status WriteTinyModel(const TinyModelSpec& spec, TinyFormat format, const std::string& path) {
  TR_RETURN_IF_ERROR(CheckTinySpec(spec));
  switch (format) {
    case TinyFormat::kFolderF32:
    case TinyFormat::kFolderBf16:
      return WriteTinyFolder(spec, format == TinyFormat::kFolderBf16, path);
    case TinyFormat::kGgufF32:
    case TinyFormat::kGgufF16:
      break;
  }
  return WriteTinyGguf(spec, format == TinyFormat::kGgufF16, path);
}

absl::Status WriteTinyPair(const std::string& root) {
  constexpr uint64_t kSeed = 11;
  TR_RETURN_IF_ERROR(WriteTinyModel(TinySmall(Architecture::kQwen2, kSeed), TinyFormat::kFolderF32,
                                    absl::StrCat(root, "small")));
  return WriteTinyModel(TinyLarge(Architecture::kQwen2, kSeed), TinyFormat::kFolderF32,
                        absl::StrCat(root, "large"));
}

}  // namespace tokenrouter
