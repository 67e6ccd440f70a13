#include "services/scheduler/dispatch/deferral_rule.h"

#include <cmath>

namespace tokenrouter {
namespace {

// The smallest change of the relative spread that is worth a message.
constexpr double kSpreadStep = 0.03;

}  // namespace

wire::Deferral DeferralOf(const BatchingPolicy& policy, double large_spread, absl::Duration cap) {
  wire::Deferral rule;
  switch (policy.kind) {
    case BatchingPolicy::Kind::kStatic:
      if (policy.m_small > 1) rule.set_least_rows(policy.m_small);
      break;
    case BatchingPolicy::Kind::kFixedWait:
      rule.set_wait_us(std::llround(policy.wait_small_ms * 1000));
      break;
    case BatchingPolicy::Kind::kModel:
      rule.set_delay_balance(true);
      rule.set_mean_step_us(std::llround(policy.step_small_ms * 1000));
      break;
    case BatchingPolicy::Kind::kGreedy:
    case BatchingPolicy::Kind::kLongestQueue:
      break;
  }
  if (!MayWait(rule)) return rule;
  rule.set_step_spread(large_spread);
  rule.set_cap_us(absl::ToInt64Microseconds(cap));
  return rule;
}

bool MayWait(const wire::Deferral& rule) {
  return rule.least_rows() > 0 || rule.wait_us() > 0 || rule.delay_balance();
}

bool DeferralDiffers(const wire::Deferral& sent, const wire::Deferral& now) {
  return sent.least_rows() != now.least_rows() || sent.wait_us() != now.wait_us() ||
         sent.delay_balance() != now.delay_balance() || sent.cap_us() != now.cap_us() ||
         sent.mean_step_us() != now.mean_step_us() ||
         std::abs(sent.step_spread() - now.step_spread()) > kSpreadStep;
}

std::optional<LargeStep> RelevantStep(std::span<const LargeStep> steps) {
  std::optional<LargeStep> soonest;
  const auto end = [](const LargeStep& large) { return large.step.since + large.step.predicted; };
  for (const LargeStep& large : steps) {
    // No row can wait for an end that is not predicted.
    if (large.rows_from_here == 0 || large.step.predicted <= absl::ZeroDuration()) continue;
    if (!soonest || end(large) < end(*soonest)) soonest = large;
  }
  return soonest;
}

}  // namespace tokenrouter
