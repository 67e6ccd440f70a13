#include "libs/inference/token_filter.h"

#include <algorithm>
#include <cmath>

namespace tokenrouter {
namespace {

// Exponents below the maximum at which the search for the nucleus looks first; it doubles until
// enough probability is found.
constexpr float kFirstDepth = 10.0f;

// The smallest logit of a nucleus and how many ids with exactly that logit belong to it.
struct NucleusEdge {
  float logit = 0.0f;
  int64_t ties = 0;
};

float MedianOfThree(float a, float b, float c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// Quickselect by mass: where the masses of `values`, taken in descending order, reach `target`.
// REQUIRES: not empty. When rounding leaves the whole below `target`, all belong.
NucleusEdge FindEdge(std::span<float> values, float shift, float scale, double target) {
  const RowKernels& kernels = BestRowKernels();
  double above = 0.0;
  NucleusEdge edge;
  while (!values.empty()) {
    const float pivot = MedianOfThree(values.front(), values[values.size() / 2], values.back());
    const auto greater =
        std::partition(values.begin(), values.end(), [=](float v) { return v > pivot; });
    const auto equal = std::partition(greater, values.end(), [=](float v) { return v == pivot; });
    const int64_t larger = greater - values.begin();
    const int64_t ties = equal - greater;
    const double mass = kernels.exp_sums(values.data(), larger, shift, scale).sum;
    if (larger > 0 && above + mass >= target) {
      values = values.first(larger);
      continue;
    }
    above += mass;
    const double each = std::exp((static_cast<double>(pivot) - shift) * scale);
    const double wanted = std::ceil((target - above) / each);
    edge = {pivot, wanted < ties ? std::max<int64_t>(1, static_cast<int64_t>(wanted)) : ties};
    if (wanted <= ties) return edge;
    above += each * ties;
    values = values.subspan(larger + ties);
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
  const NucleusEdge edge = FindEdge(values_, row.max(), scale, target);
  FilterCut cut{edge.logit, row.FindValue(edge.logit, edge.ties)};
  // Ids equal to the edge may lie behind the last one that top_k keeps.
  if (cut.logit == top_k.logit) cut.last_id = std::min(cut.last_id, top_k.last_id);
  return cut;
}

}  // namespace tokenrouter
