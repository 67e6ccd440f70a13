#include "tests/bench/engine/engine_ours.h"

#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "absl/time/time.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/timing/real_clock.h"
#include "libs/torch_engine/cpu/kv_memory.h"
#include "libs/torch_engine/model/decoder.h"
#include "libs/weights/model_source.h"

namespace tokenrouter {
namespace {

constexpr TokenId kFirstId = 1000;  // Ordinary text ids of every model.
constexpr int kIdRange = 5000;
constexpr int kMaxStepTokens = 1024;
constexpr int kFillChunk = 512;
// Tokens beyond the requested capacity of a row, since blocks are whole.
constexpr int kSpareTokens = 64;

SequenceId SequenceOf(int row) { return SequenceId{static_cast<uint64_t>(row) + 1}; }

double BytesPerWeight(const std::string& format) {
  if (format == "int4") return 0.5 + 2.0 / 32;  // A bf16 scale for every 32.
  if (format == "int8") return 1;
  return format == "bf16" ? 2 : 4;
}

double Since(absl::Time start) {
  return absl::ToDoubleMilliseconds(RealClock::Get().Now() - start);
}

}  // namespace

LinearWork::LinearWork(const ModelDescription& model) {
  const int64_t query = model.heads * model.head_dim;
  const int64_t kv = model.kv_heads * model.head_dim;
  const int64_t layer = model.hidden * (query + 2 * kv) + query * model.hidden +
                        3 * model.hidden * model.intermediate;
  per_token = static_cast<double>(model.layers * layer);
  per_choice = static_cast<double>(model.vocab_rows * model.hidden);
}

absl::StatusOr<std::unique_ptr<OurEngine>> OurEngine::Create(const std::string& path,
                                                             const std::string& format,
                                                             const std::string& kv_format,
                                                             int threads,
                                                             const MeasuredSizes& sizes) {
  TR_ASSIGN_OR_RETURN(const auto source, ModelSource::Open(path));
  const int64_t tokens =
      int64_t{sizes.rows} * (sizes.tokens + kSpareTokens) + sizes.prompt + kSpareTokens;
  TR_ASSIGN_OR_RETURN(const KvFormat kv, ParseKvFormat(kv_format));
  const int64_t block_bytes = KvMemory::BlockBytes(AttentionShapeOf(source->description()), kv);
  TorchEngineOptions options{.model_path = path,
                             .kv_format = kv,
                             .kv_bytes = block_bytes * (tokens / kKvBlockTokens + 1),
                             .threads = threads,
                             .compute_nice = 0,
                             .max_step_tokens = kMaxStepTokens};
  TR_ASSIGN_OR_RETURN(options.weight_format, ParseWeightFormat(format));
  std::unique_ptr<OurEngine> ours(new OurEngine(source->description(), format, kv_format,
                                                static_cast<double>(block_bytes) / kKvBlockTokens,
                                                sizes));
  TR_ASSIGN_OR_RETURN(ours->engine_, TorchEngine::Create(options));
  return ours;
}

OurEngine::OurEngine(ModelDescription model, std::string format, std::string kv_format,
                     double kv_bytes_per_token, const MeasuredSizes& sizes)
    : model_(std::move(model)),
      format_(std::move(format)),
      kv_format_(std::move(kv_format)),
      kv_bytes_per_token_(kv_bytes_per_token),
      rows_(sizes.rows) {
  sampling_.parameters.temperature = 0.0f;
  for (int i = 0; i < std::max(sizes.tokens, sizes.prompt) + kMaxStepTokens; ++i)
    ids_.push_back(kFirstId + (i * 7919) % kIdRange);
}

absl::StatusOr<double> OurEngine::Prefill(int ids) {
  TR_CHECK(ids <= kMaxStepTokens);
  Truncate(rows_, 0);
  const absl::Time start = RealClock::Get().Now();
  TR_RETURN_IF_ERROR(Step(0, 1, ids, 1));
  const double ms = Since(start);
  engine_->Release(SequenceOf(0));
  return ms;
}

absl::Status OurEngine::Fill(int rows, int context) {
  Truncate(rows, context);
  for (int row = 0; row < rows; ++row) {
    for (Position at = engine_->Length(SequenceOf(row)); at < context; at += kFillChunk) {
      TR_RETURN_IF_ERROR(
          Step(row, 1, static_cast<int>(std::min<Position>(kFillChunk, context - at)), 0));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> OurEngine::Decode(int rows, int context, int steps) {
  absl::Time start;
  for (int step = 0; step <= steps; ++step) {
    TR_RETURN_IF_ERROR(Step(0, rows, 1, 1));
    if (step == 0) start = RealClock::Get().Now();
  }
  const double ms = Since(start);
  Truncate(rows, context);
  return ms;
}

absl::StatusOr<double> OurEngine::Extend(int rows, int context, int ids) {
  const absl::Time start = RealClock::Get().Now();
  TR_RETURN_IF_ERROR(Step(0, rows, ids, 1));
  const double ms = Since(start);
  Truncate(rows, context);
  return ms;
}

double OurEngine::weight_bytes() const {
  return LinearWork(model_).per_token * BytesPerWeight(format_) + head_bytes();
}

double OurEngine::head_bytes() const {
  return LinearWork(model_).per_choice * BytesPerWeight(format_ == "int4" ? "int8" : format_);
}

pid_t OurEngine::process() const { return getpid(); }

absl::Status OurEngine::Step(int first_row, int rows, int ids, int choices) {
  StepBatch batch;
  for (int row = first_row; row < first_row + rows; ++row) {
    const Position first = engine_->Length(SequenceOf(row));
    batch.rows.push_back({.sequence = SequenceOf(row),
                          .first = first,
                          .new_ids = std::span<const TokenId>(ids_).subspan(
                              static_cast<size_t>(first), static_cast<size_t>(ids)),
                          .choices = choices,
                          .sampling = &sampling_,
                          .signals = {}});
  }
  return engine_->Step(batch, &result_);
}

void OurEngine::Truncate(int rows, int context) {
  for (int row = 0; row < rows; ++row) {
    const Position length = engine_->Length(SequenceOf(row));
    if (context == 0) {
      engine_->Release(SequenceOf(row));
    } else if (length > context) {
      engine_->Truncate(SequenceOf(row), context);
    }
  }
}

}  // namespace tokenrouter
