#include "services/gateway/link/scheduler_link_core.h"

#include <algorithm>

#include "absl/status/status.h"
#include "libs/timing/redial_wait.h"
#include "services/gateway/errors/api_error.h"

namespace tokenrouter {

void SchedulerLinkCore::OnDisconnected(absl::Time now, std::string why) {
  if (connection_.OnDisconnected(now, std::move(why))) requests_.OnStreamLost(now);
}

void SchedulerLinkCore::OnFrame(const wire::SchedulerFrame& frame, absl::Time now) {
  const bool was_up = connection_.up();
  const bool heard = connection_.Hears(frame);
  if (!was_up && connection_.up()) {
    ++counters_.connects;
    requests_.OnStreamUp(now);
  }
  if (!heard) {
    ++counters_.dropped_term;
    return;
  }
  for (const wire::TokenChunk& chunk : frame.chunks()) requests_.OnChunk(chunk);
  for (const wire::Rejection& rejection : frame.rejections()) requests_.OnRejection(rejection, now);
}

void SchedulerLinkCore::Tick(absl::Time now) {
  requests_.Expire(now, [this] {
    absl::Status error = absl::UnavailableError(connection_.WhyDown());
    return WithRetryAfter(WithCode(std::move(error), "no_scheduler"), kLongestRedial);
  });
}

std::optional<wire::GatewayFrame> SchedulerLinkCore::TakeFrame(absl::Time now) {
  wire::GatewayFrame frame;
  if (std::optional<wire::GatewayHello> hello = connection_.TakeHello()) {
    *frame.mutable_hello() = *std::move(hello);
    return frame;
  }
  if (!connection_.up()) return std::nullopt;
  frame.set_term(connection_.term());
  if (!requests_.Fill(&frame, now)) return std::nullopt;
  return frame;
}

absl::Time SchedulerLinkCore::NextDeadline() const {
  return std::min(connection_.dial_at(), requests_.NextDeadline(connection_.up()));
}

}  // namespace tokenrouter
