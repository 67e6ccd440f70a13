#include "libs/sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/tokens/keyed_random.h"

namespace tokenrouter {
namespace {

using Counts = absl::flat_hash_map<TokenId, int32_t>;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// Penalties keep logits within it, so that sums and differences stay finite.
constexpr float kLargestLogit = 1e30f;
// KeyedGumbel has 32 random bits: it is at most -ln(-ln(1 - 2^-33)) = 22.8739.
constexpr double kLargestNoise = 22.88;
// Factor on the bound of the noise kernel for the rounding of its float arithmetic.
constexpr double kBoundMargin = 1.001;

bool InRow(TokenId id, std::span<const float> row) {
  return id >= 0 && id < static_cast<int64_t>(row.size());
}

float Penalized(float logit, int32_t count, const SamplingParameters& parameters) {
  const float repetition = parameters.repetition_penalty;
  float result = logit > 0.0f ? logit / repetition : logit * repetition;
  result -= static_cast<float>(count) * parameters.frequency_penalty + parameters.presence_penalty;
  return std::clamp(result, -kLargestLogit, kLargestLogit);
}

// The logits after bias, penalties and masking: `raw` itself when nothing changes them.
std::span<const float> Edit(std::span<const float> raw, const SamplingContext& context,
                            const Counts& counts, Position position, std::vector<float>* edited) {
  const SamplingParameters& parameters = context.parameters;
  const bool penalize = parameters.has_penalties() && !counts.empty();
  const bool mask = position < context.mask_stop_ids_before && !context.stop_ids.empty();
  if (parameters.logit_bias.empty() && !penalize && !mask) return raw;
  edited->assign(raw.begin(), raw.end());
  for (const auto& [id, bias] : parameters.logit_bias) {
    if (InRow(id, raw)) (*edited)[id] += bias;
  }
  if (penalize) {
    for (const auto& [id, count] : counts) {
      if (count <= 0 || !InRow(id, raw) || (*edited)[id] == kMinusInfinity) continue;
      (*edited)[id] = Penalized((*edited)[id], count, parameters);
    }
  }
  if (mask) {
    for (const TokenId id : context.stop_ids) {
      if (InRow(id, raw)) (*edited)[id] = kMinusInfinity;
    }
  }
  return *edited;
}

StepSignals Signals(const SignalRequest& request, const ExpSums& sums, RowScan* row,
                    std::vector<RowEntry>* entries) {
  StepSignals signals;
  signals.entropy =
      static_cast<float>(std::max(0.0, std::log(sums.sum) - sums.weighted / sums.sum));
  if (request.max_probability) signals.max_probability = static_cast<float>(1.0 / sums.sum);
  if (request.margin) {
    row->FindLargest(2, entries);
    const double second =
        entries->size() < 2 ? 0.0 : std::exp(double{entries->back().logit} - row->max());
    signals.margin = static_cast<float>((1.0 - second) / sums.sum);
  }
  if (request.top_logits > 0) {
    row->FindLargest(request.top_logits, entries);
    std::sort(entries->begin(), entries->end(), Before);
    for (const RowEntry& entry : *entries) signals.top_logits.emplace_back(entry.id, entry.logit);
  }
  return signals;
}

// The argmax of score + noise over the ids that the cut keeps.
class GumbelSearch {
 public:
  GumbelSearch(const SamplingParameters& parameters, Position position, const FilterCut& cut,
               const RowScan& row)
      : key_{parameters.seed, parameters.choice, position, Purpose::kToken},
        words_{static_cast<uint32_t>(key_.seed), static_cast<uint32_t>(key_.seed >> 32),
               static_cast<uint32_t>(position), key_.choice, static_cast<uint32_t>(key_.purpose)},
        temperature_(parameters.temperature),
        cut_(cut),
        row_(row) {}

  TokenId Run() {
    Try(row_.argmax(), row_.max());
    for (int64_t b = 0; b < row_.blocks(); ++b) {
      const float block_max = row_.block_max(b);
      if (block_max < cut_.logit || Score(block_max) + kLargestNoise < best_score_) continue;
      TryBlock(b);
    }
    return best_;
  }

 private:
  double Score(float logit) const { return (double{logit} - row_.max()) / temperature_; }

  void Try(TokenId id, float logit) {
    if (!cut_.Keeps(id, logit)) return;
    const double score = Score(logit) + double{KeyedGumbel(key_, id)};
    if (score > best_score_ || (score == best_score_ && id < best_)) {
      best_score_ = score;
      best_ = id;
    }
  }

  void TryBlock(int64_t b) {
    const std::span<const float> values = row_.block(b);
    float padded[kRowBlock];
    const float* block = values.data();
    if (values.size() < kRowBlock) {
      std::fill(std::copy(values.begin(), values.end(), padded), padded + kRowBlock,
                kMinusInfinity);
      block = padded;
    }
    const NoiseBound bound{row_.max(), static_cast<float>(1.0 / temperature_), cut_.logit,
                           static_cast<float>(std::exp(-best_score_) * kBoundMargin)};
    uint64_t mask =
        BestRowKernels().noise_candidates(block, static_cast<uint32_t>(b), words_, bound);
    for (; mask != 0; mask &= mask - 1) {
      const int i = std::countr_zero(mask);
      if (block[i] > kMinusInfinity) Try(static_cast<TokenId>(b * kRowBlock + i), block[i]);
    }
  }

  const RandomKey key_;
  const NoiseKey words_;
  const double temperature_;
  const FilterCut cut_;
  const RowScan& row_;
  double best_score_ = -std::numeric_limits<double>::infinity();
  TokenId best_ = 0;
};

absl::StatusOr<Choice> SampleWithCounts(std::span<const float> logits,
                                        const SamplingContext& context, const Counts& counts,
                                        Position position, const SignalRequest& request,
                                        SamplerScratch* scratch) {
  const auto sums_of = [](const RowScan& row) {
    return BestRowKernels().exp_sums(row.logits().data(), static_cast<int64_t>(row.logits().size()),
                                     row.max(), 1.0f);
  };
  RowScan* raw = &scratch->raw;
  raw->Read(logits);
  const ExpSums raw_sums = sums_of(*raw);
  if (!std::isfinite(raw_sums.sum)) {
    return absl::InternalError(absl::StrCat("logits before position ", position,
                                            " hold NaN or +inf, or nothing above -inf: the "
                                            "weights or the numerics are broken"));
  }
  const std::span<const float> edited = Edit(logits, context, counts, position, &scratch->edited);
  RowScan* row = raw;
  if (edited.data() != logits.data()) {
    row = &scratch->processed;
    row->Read(edited);
    if (row->max() == kMinusInfinity) {
      return absl::InvalidArgumentError(
          absl::StrCat("position ", position,
                       ": every usable id is a masked stop id; lower the minimum number "
                       "of tokens"));
    }
  }
  Choice choice;
  const SamplingParameters& parameters = context.parameters;
  if (parameters.temperature < kLeastTemperature) {
    choice.id = row->argmax();
  } else {
    const FilterCut cut = scratch->filter.Cut(parameters, row);
    choice.id = GumbelSearch(parameters, position, cut, *row).Run();
  }
  choice.logprob =
      static_cast<float>(double{logits[choice.id]} - raw->max() - std::log(raw_sums.sum));
  const bool masked = request.masked && row != raw;
  choice.signals =
      Signals(request, masked ? sums_of(*row) : raw_sums, masked ? row : raw, &scratch->entries);
  return choice;
}

}  // namespace

absl::StatusOr<Choice> SampleRow(std::span<const float> logits, const SamplingContext& context,
                                 Position position, const SignalRequest& signals,
                                 int32_t usable_ids, SamplerScratch* scratch) {
  TR_CHECK(usable_ids > 0 && usable_ids <= static_cast<int64_t>(logits.size()))
      << usable_ids << " of " << logits.size();
  return SampleWithCounts(logits.first(usable_ids), context, context.generated_counts, position,
                          signals, scratch);
}

absl::Status SampleChoices(const StepRow& row, std::span<const float> logits, int64_t stride,
                           int32_t usable_ids, SamplerScratch* scratch,
                           std::vector<Choice>* choices) {
  TR_CHECK(row.sampling != nullptr);
  TR_CHECK(row.choices > 0 && row.choices <= static_cast<int64_t>(row.new_ids.size()));
  TR_CHECK(usable_ids > 0 && usable_ids <= stride);
  TR_CHECK(static_cast<int64_t>(logits.size()) >= (row.choices - 1) * stride + usable_ids);
  const SamplingContext& context = *row.sampling;
  // Later choices see the row's own ids as generated.
  const bool count = row.choices > 1 && context.parameters.has_penalties();
  if (count) scratch->counts = context.generated_counts;
  const auto first = static_cast<int32_t>(row.new_ids.size()) - row.choices;
  choices->clear();
  for (int32_t i = 0; i < row.choices; ++i) {
    if (count && i > 0) ++scratch->counts[row.new_ids[first + i]];
    TR_ASSIGN_OR_RETURN(Choice choice,
                        SampleWithCounts(logits.subspan(i * stride, usable_ids), context,
                                         count ? scratch->counts : context.generated_counts,
                                         row.first + first + i + 1, row.signals, scratch));
    choices->push_back(std::move(choice));
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
