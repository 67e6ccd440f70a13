#include "libs/torch_engine/model/decoder_weights.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

// Several matrices with the same inputs, one below the other.
WeightRowReader ReadStacked(std::vector<ModelTensor> parts) {
  return [parts = std::move(parts)](int64_t first, int64_t count, std::span<float> out) {
    for (const ModelTensor& part : parts) {
      const int64_t here = std::clamp<int64_t>(part.rows() - first, 0, count);
      if (here > 0) {
        const auto floats = static_cast<size_t>(here * part.columns());
        ModelSource::ReadRows(part, first, here, out.first(floats));
        out = out.subspan(floats);
        count -= here;
      }
      first = std::max<int64_t>(0, first - part.rows());
    }
  };
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
                         .read = ReadStacked({embedding}),
                         .bias = {}};
    for (int64_t layer = 0; layer < model.layers; ++layer) {
      TR_ASSIGN_OR_RETURN(DecoderLayer loaded, LoadLayer(layer));
      weights.layers.push_back(std::move(loaded));
    }
    TR_ASSIGN_OR_RETURN(weights.output_norm, LoadVector(TensorRole::kOutputNorm, 0));
    TR_ASSIGN_OR_RETURN(const ModelTensor output, source_.Tensor(TensorRole::kOutput));
    TR_ASSIGN_OR_RETURN(weights.output, Pack({output}, output_rows_, {}, MatrixUse::kOutput));
    return weights;
  }

 private:
  absl::StatusOr<DecoderLayer> LoadLayer(int64_t layer) {
    using enum TensorRole;
    const ModelDescription& model = source_.description();
    DecoderLayer out;
    TR_ASSIGN_OR_RETURN(out.attention_norm, LoadVector(kAttentionNorm, layer));
    TR_ASSIGN_OR_RETURN(out.feed_forward_norm, LoadVector(kFeedForwardNorm, layer));
    if (model.qk_norm) {
      TR_ASSIGN_OR_RETURN(out.query_norm, LoadVector(kQueryNorm, layer));
      TR_ASSIGN_OR_RETURN(out.key_norm, LoadVector(kKeyNorm, layer));
    }
    std::vector<float> qkv_bias, output_bias;
    if (model.qkv_bias) {
      for (const TensorRole role : {kQueryBias, kKeyBias, kValueBias}) {
        TR_RETURN_IF_ERROR(AppendVector(role, layer, &qkv_bias));
      }
    }
    if (model.output_bias) {
      TR_RETURN_IF_ERROR(AppendVector(kAttentionOutputBias, layer, &output_bias));
    }
    TR_ASSIGN_OR_RETURN(out.qkv, PackRoles({kQuery, kKey, kValue}, layer, qkv_bias));
    TR_ASSIGN_OR_RETURN(out.attention_output, PackRoles({kAttentionOutput}, layer, output_bias));
    TR_ASSIGN_OR_RETURN(out.gate_up, PackRoles({kGate, kUp}, layer, {}));
    TR_ASSIGN_OR_RETURN(out.down, PackRoles({kDown}, layer, {}));
    return out;
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
    std::vector<ModelTensor> parts;
    int64_t rows = 0;
    for (const TensorRole role : roles) {
      TR_ASSIGN_OR_RETURN(ModelTensor part, source_.Tensor(role, layer));
      rows += part.rows();
      parts.push_back(std::move(part));
    }
    return Pack(std::move(parts), rows, bias, MatrixUse::kLayer);
  }

  absl::StatusOr<std::unique_ptr<Matrix>> Pack(std::vector<ModelTensor> parts, int64_t rows,
                                               std::span<const float> bias, MatrixUse use) {
    const int64_t inputs = parts.front().columns();
    const std::string name = parts.front().name;
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
