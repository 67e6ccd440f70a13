#include "services/scheduler/request/wait_bound.h"

#include <algorithm>

namespace tokenrouter {

WaitBound BoundOf(const RequestMachine& request, absl::Time since, absl::Duration cap) {
  const wire::GenerationSpec& spec = request.spec();
  WaitBound bound;
  bound.latest = since + cap;
  if (spec.max_defer_ms() > 0) {
    bound.latest = std::min(bound.latest, since + absl::Milliseconds(spec.max_defer_ms()));
  }
  const bool started = request.history().generated() > 0;
  if (started && spec.token_slo_ms() > 0) {
    bound.due = request.service().committed_at + absl::Milliseconds(spec.token_slo_ms());
  } else if (!started && spec.ttft_slo_ms() > 0) {
    bound.due = request.origin().submitted_at + absl::Milliseconds(spec.ttft_slo_ms());
  }
  return bound;
}

absl::Time ServeBy(const WaitBound& bound, absl::Duration step) {
  return std::min(bound.latest, bound.due - step);
}

}  // namespace tokenrouter
