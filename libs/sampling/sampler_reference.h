// The sampler's rules once more, straight and slow, in double over all ids: what the tests compare
// with. Test-only.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "libs/inference/step_batch.h"
#include "libs/tokens/keyed_random.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

// Ids closer than this to a limit of top_p or min_p may fall on either side of it.
inline constexpr double kReferenceTolerance = 2e-6;

struct ReferenceRow {
  std::vector<double> processed;    // After bias, penalties and masking.
  std::vector<double> probability;  // Of the kept ids, normalized; 0 elsewhere.
  bool ambiguous = false;           // A limit was hit within the tolerance.
};

inline std::vector<double> ReferenceProcess(std::span<const float> logits,
                                            const SamplingContext& context, Position position) {
  const SamplingParameters& p = context.parameters;
  std::vector<double> x(logits.begin(), logits.end());
  for (const auto& [id, bias] : p.logit_bias) x[id] += bias;
  for (const auto& [id, count] : context.generated_counts) {
    x[id] = x[id] > 0 ? x[id] / p.repetition_penalty : x[id] * p.repetition_penalty;
    x[id] -= count * p.frequency_penalty + p.presence_penalty;
  }
  if (position < context.mask_stop_ids_before) {
    for (const TokenId id : context.stop_ids) x[id] = -std::numeric_limits<double>::infinity();
  }
  return x;
}

// REQUIRES: temperature above 0.
inline ReferenceRow ReferenceFilter(std::span<const float> logits, const SamplingContext& context,
                                    Position position) {
  const SamplingParameters& p = context.parameters;
  ReferenceRow row;
  row.processed = ReferenceProcess(logits, context, position);
  const auto& x = row.processed;
  std::vector<TokenId> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return x[a] > x[b]; });
  size_t keep = x.size();
  if (p.top_k > 0) keep = std::min<size_t>(keep, p.top_k);
  const auto mass = [&](TokenId id) { return std::exp((x[id] - x[order[0]]) / p.temperature); };
  const auto near = [&](double a, double b) { return std::abs(a - b) < kReferenceTolerance; };
  if (p.top_p < 1.0f) {
    double total = 0, sum = 0;
    for (size_t i = 0; i < keep; ++i) total += mass(order[i]);
    for (size_t i = 0; i < keep; ++i) {
      sum += mass(order[i]) / total;
      row.ambiguous |= near(sum, p.top_p);
      if (sum >= p.top_p) keep = i + 1;
    }
  }
  if (p.min_p > 0.0f) {
    size_t i = 0;
    while (i < keep && mass(order[i]) >= p.min_p) ++i;
    for (size_t j = i == 0 ? 0 : i - 1; j < std::min(i + 1, keep); ++j) {
      row.ambiguous |= near(mass(order[j]), p.min_p) && mass(order[j]) != 1.0;
    }
    keep = std::max<size_t>(i, 1);
  }
  row.probability.assign(x.size(), 0.0);
  double total = 0;
  for (size_t i = 0; i < keep; ++i) total += mass(order[i]);
  for (size_t i = 0; i < keep; ++i) row.probability[order[i]] = mass(order[i]) / total;
  return row;
}

// Gumbel-max over the kept ids.
inline TokenId ReferenceDraw(const ReferenceRow& row, const SamplingParameters& parameters,
                             Position position) {
  const RandomKey key{parameters.seed, parameters.choice, position, Purpose::kToken};
  TokenId best = -1;
  double best_score = 0;
  for (TokenId id = 0; id < static_cast<TokenId>(row.processed.size()); ++id) {
    if (row.probability[id] == 0.0) continue;
    const double score = row.processed[id] / parameters.temperature + double{KeyedGumbel(key, id)};
    if (best < 0 || score > best_score) best = id, best_score = score;
  }
  return best;
}

struct ReferenceEvidence {
  double entropy = 0, max_probability = 0, margin = 0;
  std::vector<double> log_probability;
};

inline ReferenceEvidence ReferenceSignals(std::span<const double> x) {
  ReferenceEvidence evidence;
  const double largest = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (const double value : x) total += std::exp(value - largest);
  std::vector<double> p;
  for (const double value : x) {
    evidence.log_probability.push_back(value - largest - std::log(total));
    p.push_back(std::exp(evidence.log_probability.back()));
    if (p.back() > 0) evidence.entropy -= p.back() * evidence.log_probability.back();
  }
  std::sort(p.begin(), p.end(), std::greater<>());
  evidence.max_probability = p[0];
  evidence.margin = p[0] - (p.size() > 1 ? p[1] : 0.0);
  return evidence;
}

}  // namespace tokenrouter
