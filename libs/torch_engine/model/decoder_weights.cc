#include "libs/torch_engine/model/decoder_weights.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "libs/status/status_macros.h"
#include "libs/torch_engine/model/key_balance.h"

namespace tokenrouter {
namespace {

// A matrix, or a part of one, whose rows are multiplied by factors.
struct StackedPart {
  ModelTensor tensor;
  std::vector<float> factors;  // Of its rows; empty: all 1.
};

void ReadScaled(const StackedPart& part, int64_t first, int64_t count, std::span<float> out) {
  ModelSource::ReadRows(part.tensor, first, count, out);
  if (part.factors.empty()) return;
  const int64_t columns = part.tensor.columns();
  for (int64_t row = 0; row < count; ++row) {
    for (float& value : out.subspan(row * columns, columns)) value *= part.factors[first + row];
  }
}

// Several matrices with the same inputs, one below the other.
WeightRowReader ReadStacked(std::vector<StackedPart> parts) {
  return [parts = std::move(parts)](int64_t first, int64_t count, std::span<float> out) {
    for (const StackedPart& part : parts) {
      const int64_t rows = part.tensor.rows();
      const int64_t here = std::clamp<int64_t>(rows - first, 0, count);
      if (here > 0) {
        const auto floats = static_cast<size_t>(here * part.tensor.columns());
        ReadScaled(part, first, here, out.first(floats));
        out = out.subspan(floats);
        count -= here;
      }
      first = std::max<int64_t>(0, first - rows);
    }
  };
}

// Keys are assumed to lie within this many standard deviations of their bias.
constexpr float kKeySpread = 3.0f;

// About how large each channel of the keys gets, from inputs that `norm` scales and that have
// variance 1 otherwise.
std::vector<float> KeySizes(const ModelTensor& keys, std::span<const float> norm,
                            std::span<const float> bias) {
  std::vector<float> sizes(keys.rows()), row(keys.columns());
  for (int64_t i = 0; i < keys.rows(); ++i) {
    ModelSource::ReadRows(keys, i, 1, row);
    double squares = 0;
    for (size_t j = 0; j < row.size(); ++j) {
      const double weight = double{row[j]} * norm[j];
      squares += weight * weight;
    }
    const float spread = kKeySpread * static_cast<float>(std::sqrt(squares));
    sizes[i] = bias.empty() ? spread : std::hypot(bias[i], spread);
  }
  return sizes;
}

std::vector<float> Inverses(std::vector<float> values) {
  for (float& value : values) value = 1.0f / value;
  return values;
}

// values[i] *= factors[i].
void Scale(std::span<const float> factors, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) values[i] *= factors[i];
}

class Loader {
 public:
  Loader(const ModelSource& source, int64_t output_rows, const LoadProgress& progress, Ops* ops)
      : source_(source),
        output_rows_(output_rows),
        progress_(progress),
        ops_(ops),
        total_(MatrixValues(source.description(), output_rows)) {}

  absl::StatusOr<DecoderWeights> Load() {
    const ModelDescription& model = source_.description();
    DecoderWeights weights;
    TR_ASSIGN_OR_RETURN(const ModelTensor embedding, source_.Tensor(TensorRole::kTokenEmbedding));
    weights.embedding = {.name = embedding.name,
                         .inputs = model.hidden,
                         .outputs = embedding.rows(),
                         .read = ReadStacked({{embedding, {}}}),
                         .bias = {}};
    for (int64_t layer = 0; layer < model.layers; ++layer) {
      TR_ASSIGN_OR_RETURN(DecoderLayer loaded, LoadLayer(layer));
      weights.layers.push_back(std::move(loaded));
    }
    TR_ASSIGN_OR_RETURN(weights.output_norm, LoadVector(TensorRole::kOutputNorm, 0));
    TR_ASSIGN_OR_RETURN(const ModelTensor output, source_.Tensor(TensorRole::kOutput));
    TR_ASSIGN_OR_RETURN(weights.output, Pack({{output, {}}}, output_rows_, {}, MatrixUse::kOutput));
    return weights;
  }

 private:
  absl::StatusOr<DecoderLayer> LoadLayer(int64_t layer) {
    using enum TensorRole;
    const ModelDescription& model = source_.description();
    DecoderLayer out;
    std::vector<float> attention_norm, output_bias;
    TR_RETURN_IF_ERROR(AppendVector(kAttentionNorm, layer, &attention_norm));
    TR_ASSIGN_OR_RETURN(out.attention_norm, ops_->Upload(attention_norm));
    TR_ASSIGN_OR_RETURN(out.feed_forward_norm, LoadVector(kFeedForwardNorm, layer));
    if (model.qk_norm) TR_RETURN_IF_ERROR(LoadHeadNorms(layer, &out));
    if (model.output_bias) {
      TR_RETURN_IF_ERROR(AppendVector(kAttentionOutputBias, layer, &output_bias));
    }
    TR_ASSIGN_OR_RETURN(out.qkv, PackQkv(layer, attention_norm));
    TR_ASSIGN_OR_RETURN(out.attention_output, PackRoles({kAttentionOutput}, layer, output_bias));
    TR_ASSIGN_OR_RETURN(out.gate_up, PackRoles({kGate, kUp}, layer, {}));
    TR_ASSIGN_OR_RETURN(out.down, PackRoles({kDown}, layer, {}));
    return out;
  }

  // Norms undo what scales their inputs: they are balanced themselves.
  absl::Status LoadHeadNorms(int64_t layer, DecoderLayer* out) {
    const ModelDescription& model = source_.description();
    std::vector<float> query, key;
    TR_RETURN_IF_ERROR(AppendVector(TensorRole::kQueryNorm, layer, &query));
    TR_RETURN_IF_ERROR(AppendVector(TensorRole::kKeyNorm, layer, &key));
    std::vector<float> sizes(key.size());
    std::transform(key.begin(), key.end(), sizes.begin(), [](float x) { return std::abs(x); });
    const std::vector<float> balance = KeyBalance(sizes, model.head_dim, model.rope.dim);
    Scale(balance, query);
    Scale(Inverses(balance), key);
    TR_ASSIGN_OR_RETURN(out->query_norm, ops_->Upload(query));
    TR_ASSIGN_OR_RETURN(out->key_norm, ops_->Upload(key));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Matrix>> PackQkv(int64_t layer,
                                                  std::span<const float> attention_norm) {
    using enum TensorRole;
    const ModelDescription& model = source_.description();
    std::vector<StackedPart> parts;
    int64_t rows = 0;
    for (const TensorRole role : {kQuery, kKey, kValue}) {
      TR_ASSIGN_OR_RETURN(ModelTensor tensor, source_.Tensor(role, layer));
      rows += tensor.rows();
      parts.push_back({std::move(tensor), {}});
    }
    std::vector<float> query_bias, key_bias, value_bias;
    if (model.qkv_bias) {
      TR_RETURN_IF_ERROR(AppendVector(kQueryBias, layer, &query_bias));
      TR_RETURN_IF_ERROR(AppendVector(kKeyBias, layer, &key_bias));
      TR_RETURN_IF_ERROR(AppendVector(kValueBias, layer, &value_bias));
    }
    if (!model.qk_norm) {
      const std::vector<float> balance = KeyBalance(
          KeySizes(parts[1].tensor, attention_norm, key_bias), model.head_dim, model.rope.dim);
      for (int64_t row = 0; row < parts[0].tensor.rows(); ++row) {
        const int64_t kv_head = row / model.head_dim * model.kv_heads / model.heads;
        parts[0].factors.push_back(balance[kv_head * model.head_dim + row % model.head_dim]);
      }
      parts[1].factors = Inverses(balance);
      Scale(parts[0].factors, query_bias);
      Scale(parts[1].factors, key_bias);
    }
    std::vector<float> bias;
    for (const auto& part : {query_bias, key_bias, value_bias}) {
      bias.insert(bias.end(), part.begin(), part.end());
    }
    return Pack(std::move(parts), rows, bias, MatrixUse::kLayer);
  }

  absl::Status AppendVector(TensorRole role, int64_t layer, std::vector<float>* values) {
    TR_ASSIGN_OR_RETURN(const ModelTensor tensor, source_.Tensor(role, layer));
    const size_t before = values->size();
    values->resize(before + static_cast<size_t>(tensor.columns()));
    ModelSource::ReadRows(tensor, 0, 1, std::span(*values).subspan(before));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<FloatBuffer>> LoadVector(TensorRole role, int64_t layer) {
    std::vector<float> values;
    TR_RETURN_IF_ERROR(AppendVector(role, layer, &values));
    return ops_->Upload(values);
  }

  absl::StatusOr<std::unique_ptr<Matrix>> PackRoles(std::initializer_list<TensorRole> roles,
                                                    int64_t layer, std::span<const float> bias) {
    std::vector<StackedPart> parts;
    int64_t rows = 0;
    for (const TensorRole role : roles) {
      TR_ASSIGN_OR_RETURN(ModelTensor part, source_.Tensor(role, layer));
      rows += part.rows();
      parts.push_back({std::move(part), {}});
    }
    return Pack(std::move(parts), rows, bias, MatrixUse::kLayer);
  }

  absl::StatusOr<std::unique_ptr<Matrix>> Pack(std::vector<StackedPart> parts, int64_t rows,
                                               std::span<const float> bias, MatrixUse use) {
    const int64_t inputs = parts.front().tensor.columns();
    const std::string name = parts.front().tensor.name;
    TR_ASSIGN_OR_RETURN(auto matrix, ops_->Pack({.name = name,
                                                 .inputs = inputs,
                                                 .outputs = rows,
                                                 .read = ReadStacked(std::move(parts)),
                                                 .bias = bias},
                                                use));
    done_ += inputs * rows;
    if (progress_) progress_(done_, total_);
    return matrix;
  }

  const ModelSource& source_;
  const int64_t output_rows_;
  const LoadProgress& progress_;
  Ops* const ops_;
  const int64_t total_;
  int64_t done_ = 0;
};

}  // namespace

int64_t MatrixValues(const ModelDescription& model, int64_t output_rows) {
  const int64_t attention = 2 * model.head_dim * (model.heads + model.kv_heads);
  return model.hidden * (model.layers * (attention + 3 * model.intermediate) + output_rows);
}

absl::StatusOr<DecoderWeights> LoadDecoderWeights(const ModelSource& source, int64_t output_rows,
                                                  const LoadProgress& progress, Ops* ops) {
  return Loader(source, output_rows, progress, ops).Load();
}

}  // namespace tokenrouter
