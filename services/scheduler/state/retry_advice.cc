#include "services/scheduler/state/retry_advice.h"

#include <algorithm>

#include "libs/timing/jitter.h"

namespace tokenrouter {
namespace {

constexpr double kNewest = 0.1;  // Weight of the newest gap: some ten ends are remembered.

}  // namespace

void RetryAdvice::NoteEnd(absl::Time now) {
  const absl::Time last = ended_at_;
  ended_at_ = now;
  if (last == absl::InfinitePast()) return;
  // An idle night says nothing about a queue.
  const absl::Duration gap = std::min(now - last, most_);
  between_ends_ =
      between_ends_ == absl::ZeroDuration() ? gap : between_ends_ * (1 - kNewest) + gap * kNewest;
}

absl::Duration RetryAdvice::After(int queued, absl::Duration at_least,
                                  std::string_view request_id) const {
  const absl::Duration wait = std::clamp(between_ends_ * queued, least_, most_);
  return std::max(wait, at_least) * (1 + kRetrySpread * Jitter(request_id, 0));
}

}  // namespace tokenrouter
