#include "libs/sampling/token_filter.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace tokenrouter {
namespace {

// Exponents below the maximum at which the search for the nucleus looks first; it doubles until
// enough probability is found.
constexpr float kFirstDepth = 3.0f;

// The smallest logit of a nucleus and how many ids with exactly that logit belong to it.
struct NucleusEdge {
  float logit = 0.0f;
  int64_t ties = 0;
};

float MedianOfThree(float a, float b, float c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// Splits `values` around the pivot without a branch: logits are random, so a branch would be
// mispredicted every second time. The smaller ones move to the front.
struct Split {
  int64_t greater = 0;  // How many went to the buffer.
  int64_t less = 0;
};
Split SplitAround(float pivot, std::span<float> values, float* greater) {
  Split split;
  for (const float value : values) {
    greater[split.greater] = value;
    values[split.less] = value;
    split.greater += value > pivot;
    split.less += value < pivot;
  }
  return split;
}

// Quickselect by mass: where the masses of `values`, taken in descending order, reach `target`.
// `buffer` has space for as many; both are overwritten. REQUIRES: not empty. When rounding leaves
// the whole below `target`, all belong.
NucleusEdge FindEdge(std::span<float> values, std::span<float> buffer, float shift, float scale,
                     double target) {
  const RowKernels& kernels = BestRowKernels();
  double above = 0.0;
  NucleusEdge edge;
  while (!values.empty()) {
    const float pivot = MedianOfThree(values.front(), values[values.size() / 2], values.back());
    const Split split = SplitAround(pivot, values, buffer.data());
    const int64_t ties = static_cast<int64_t>(values.size()) - split.greater - split.less;
    const double mass = kernels.exp_sums(buffer.data(), split.greater, shift, scale).sum;
    if (split.greater > 0 && above + mass >= target) {
      std::swap(values, buffer);
      values = values.first(split.greater);
      continue;
    }
    above += mass;
    const double each = std::exp((static_cast<double>(pivot) - shift) * scale);
    const double wanted = std::ceil((target - above) / each);
    edge = {pivot, wanted < ties ? std::max<int64_t>(1, static_cast<int64_t>(wanted)) : ties};
    if (wanted <= ties) return edge;
    above += each * ties;
    values = values.first(split.less);
  }
  return edge;
}

}  // namespace

FilterCut TokenFilter::Cut(const SamplingParameters& parameters, RowScan* row) {
  FilterCut cut;
  if (parameters.top_k > 0 && parameters.top_k < static_cast<int64_t>(row->logits().size())) {
    row->FindLargest(parameters.top_k, &entries_);
    cut = {entries_.back().logit, entries_.back().id};
  }
  if (parameters.top_p < 1.0f) {
    cut = Nucleus(parameters.temperature, parameters.top_p, cut, *row);
  }
  if (parameters.min_p > 0.0f) {
    const auto least = static_cast<float>(
        row->max() + std::log(static_cast<double>(parameters.min_p)) * parameters.temperature);
    if (least > cut.logit) cut = {least, std::numeric_limits<TokenId>::max()};
  }
  return cut;
}

FilterCut TokenFilter::Nucleus(float temperature, float top_p, const FilterCut& top_k,
                               const RowScan& row) {
  const RowKernels& kernels = BestRowKernels();
  const float scale = 1.0f / temperature;
  const bool limited = top_k.logit > -std::numeric_limits<float>::infinity();
  double target = 0.0;
  if (limited) {
    values_.clear();
    for (const RowEntry& entry : entries_) values_.push_back(entry.logit);
    target =
        top_p *
        kernels.exp_sums(values_.data(), static_cast<int64_t>(values_.size()), row.max(), scale)
            .sum;
  } else {
    const std::span<const float> all = row.logits();
    target = top_p *
             kernels.exp_sums(all.data(), static_cast<int64_t>(all.size()), row.max(), scale).sum;
    for (float depth = kFirstDepth;; depth *= 2.0f) {
      row.CollectValues(row.max() - depth * temperature, &values_);
      const double found =
          kernels.exp_sums(values_.data(), static_cast<int64_t>(values_.size()), row.max(), scale)
              .sum;
      if (found >= target || depth > 100.0f) break;
    }
  }
  buffer_.resize(values_.size());
  const NucleusEdge edge = FindEdge(values_, buffer_, row.max(), scale, target);
  FilterCut cut{edge.logit, row.FindValue(edge.logit, edge.ties)};
  // Ids equal to the edge may lie behind the last one that top_k keeps.
  if (cut.logit == top_k.logit) cut.last_id = std::min(cut.last_id, top_k.last_id);
  return cut;
}

}  // namespace tokenrouter
