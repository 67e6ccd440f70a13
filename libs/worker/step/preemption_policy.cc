#include "libs/worker/step/preemption_policy.h"

namespace tokenrouter {
namespace {

// True when `a` should be dropped rather than `b`.
bool Before(const VictimCandidate& a, const VictimCandidate& b) {
  if (a.ready != b.ready) return !a.ready;
  if (a.ready) return a.age > b.age;
  return a.last_step != b.last_step ? a.last_step < b.last_step : a.age > b.age;
}

}  // namespace

std::optional<size_t> ChooseVictim(std::span<const VictimCandidate> candidates, size_t in_need) {
  std::optional<size_t> victim;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const VictimCandidate& candidate = candidates[i];
    if (i == in_need || !candidate.holds_kv) continue;
    if (candidate.ready && candidate.age < candidates[in_need].age) continue;
    if (!victim.has_value() || Before(candidate, candidates[*victim])) victim = i;
  }
  return victim;
}

}  // namespace tokenrouter
