#include "libs/tokens/stop_rules.h"

#include <algorithm>
#include <cstddef>

namespace tokenrouter {

const char* FinishReasonName(FinishReason reason) {
  constexpr const char* kNames[] = {"none", "stop", "length", "cancelled", "error"};
  return kNames[static_cast<size_t>(reason)];
}

void AddEosIds(std::span<const TokenId> eos_ids, StopRules* rules) {
  std::vector<TokenId>& ids = rules->stop_ids;
  ids.insert(ids.end(), eos_ids.begin(), eos_ids.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

FinishReason CheckStop(const StopRules& rules, TokenId id, int32_t generated) {
  const bool is_stop =
      !rules.ignore_eos && generated >= rules.min_new_tokens &&
      std::find(rules.stop_ids.begin(), rules.stop_ids.end(), id) != rules.stop_ids.end();
  if (is_stop) return FinishReason::kStop;
  return generated >= rules.max_new_tokens ? FinishReason::kLength : FinishReason::kNone;
}

bool MasksStopIds(const StopRules& rules, int32_t generated) {
  return generated < rules.min_new_tokens;
}

}  // namespace tokenrouter
