#include "services/scheduler/placement/eviction_choice.h"

#include <algorithm>

namespace tokenrouter {
namespace {

bool MayGo(const EvictionCandidate& candidate, const EvictionTerms& terms) {
  if (terms.need == EvictionNeed::kGrowth || !candidate.used) return true;
  const absl::Duration price =
      absl::Milliseconds(terms.id_ms * static_cast<double>(candidate.known)) * terms.residents;
  if (candidate.until_visit >= price) return true;
  return terms.need == EvictionNeed::kOverdue &&
         candidate.resident_for >= price / terms.rebuild_share;
}

double Value(const EvictionCandidate& candidate) {
  return absl::ToDoubleMilliseconds(candidate.until_visit) /
         static_cast<double>(std::max<Position>(1, candidate.known));
}

bool IsBetter(const EvictionCandidate& a, const EvictionCandidate& b) {
  if (a.used != b.used) return !a.used;
  return Value(a) > Value(b);
}

}  // namespace

std::vector<size_t> ChooseVictims(std::span<const EvictionCandidate> candidates,
                                  const EvictionTerms& terms) {
  std::vector<size_t> order;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (MayGo(candidates[i], terms)) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return IsBetter(candidates[a], candidates[b]); });
  std::vector<size_t> victims;
  int64_t freed = 0;
  for (const size_t index : order) {
    victims.push_back(index);
    freed += candidates[index].blocks;
    if (freed >= terms.blocks) break;
  }
  if (victims.empty() || freed < terms.blocks) return {};
  // A later victim may have made an earlier one superfluous.
  for (auto it = victims.begin(); it != victims.end();) {
    const int64_t without = freed - candidates[*it].blocks;
    if (victims.size() == 1 || without < terms.blocks) {
      ++it;
      continue;
    }
    freed = without;
    it = victims.erase(it);
  }
  return victims;
}

}  // namespace tokenrouter
