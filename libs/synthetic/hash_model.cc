#include "libs/synthetic/hash_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

// The purposes of a hash of a history.
enum class Use : uint64_t { kSharpness = 1, kIds = 2, kDisagree = 3, kEnd = 4 };

// Candidate j has probability proportional to ratio^j. ratio = kLeastRatio + kRatioRange * u^8
// puts about a fifth of the positions above 0.45 nats; kLeastRatio keeps entropies above zero.
constexpr double kLeastRatio = 1e-4;
constexpr double kRatioRange = 0.9;
constexpr int kRatioPower = 8;

uint64_t Mix(uint64_t x) {  // The finalizer of SplitMix64.
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t Combine(uint64_t a, uint64_t b) { return Mix(a * 0x9E3779B97F4A7C15u + b + 1); }

uint64_t Draw(uint64_t key, Use use) { return Combine(key, static_cast<uint64_t>(use)); }

double Uniform(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

void HashHistory::Append(std::span<const TokenId> ids) {
  uint64_t hash = At(length());
  for (const TokenId id : ids) {
    hash = Combine(hash, static_cast<uint64_t>(id));
    hashes_.push_back(hash);
  }
}

HashHistory HashHistory::Prefix(Position length) const {
  HashHistory prefix;
  prefix.hashes_.assign(hashes_.begin(), hashes_.begin() + length);
  return prefix;
}

HashModel::HashModel(HashModelOptions options) : options_(std::move(options)) {
  TR_CHECK(options_.usable_ids > kHashCandidates + static_cast<int64_t>(options_.eos_ids.size()))
      << "usable ids " << options_.usable_ids;
  TR_CHECK(options_.acceptance_rate >= 0.0 && options_.acceptance_rate <= 1.0)
      << options_.acceptance_rate;
  TR_CHECK(options_.eos_probability == 0.0 || !options_.eos_ids.empty());
}

HashModel::Candidates HashModel::CandidatesAfter(uint64_t history) const {
  uint64_t key = Combine(options_.seed, history);
  if (options_.role == Role::kLarge &&
      Uniform(Draw(key, Use::kDisagree)) >= options_.acceptance_rate) {
    key = Mix(~key);
  }
  Candidates candidates;
  const double u = Uniform(Draw(key, Use::kSharpness));
  const double step = std::log(kLeastRatio + kRatioRange * std::pow(u, kRatioPower));
  int count = 0;
  if (Uniform(Draw(key, Use::kEnd)) < options_.eos_probability) {
    candidates.ids[count++] = options_.eos_ids[0];
  }
  const auto usable = static_cast<uint64_t>(options_.usable_ids);
  const std::vector<TokenId>& eos = options_.eos_ids;
  for (uint64_t id = Draw(key, Use::kIds) % usable; count < kHashCandidates;
       id = (id + 1) % usable) {
    if (std::find(eos.begin(), eos.end(), static_cast<TokenId>(id)) != eos.end()) continue;
    candidates.ids[count++] = static_cast<TokenId>(id);
  }
  for (int j = 0; j < kHashCandidates; ++j) candidates.logits[j] = static_cast<float>(step * j);
  return candidates;
}

absl::StatusOr<Choice> HashModel::Next(uint64_t history, Position length,
                                       const SamplingContext& context,
                                       const absl::flat_hash_map<TokenId, int32_t>& counts,
                                       const SignalRequest& signals,
                                       SamplerScratch* scratch) const {
  const Candidates candidates = CandidatesAfter(history);
  // The same context with ranks for ids.
  SamplingContext ranked;
  ranked.parameters = context.parameters;
  ranked.parameters.logit_bias.clear();
  ranked.mask_stop_ids_before = context.mask_stop_ids_before;
  for (int rank = 0; rank < kHashCandidates; ++rank) {
    const TokenId id = candidates.ids[rank];
    for (const auto& [biased, bias] : context.parameters.logit_bias) {
      if (biased == id) ranked.parameters.logit_bias.emplace_back(rank, bias);
    }
    if (context.parameters.has_penalties()) {
      const auto it = counts.find(id);
      if (it != counts.end()) ranked.generated_counts[rank] = it->second;
    }
    if (std::find(context.stop_ids.begin(), context.stop_ids.end(), id) != context.stop_ids.end()) {
      ranked.stop_ids.push_back(rank);
    }
  }
  TR_ASSIGN_OR_RETURN(Choice choice, SampleRow(candidates.logits, ranked, length, signals,
                                               kHashCandidates, scratch));
  choice.id = candidates.ids[choice.id];
  for (auto& [id, logit] : choice.signals.top_logits) id = candidates.ids[id];
  return choice;
}

}  // namespace tokenrouter
