#include "libs/worker/step/local_deferral.h"

#include <algorithm>
#include <cmath>

#include "libs/batching_model/delay_balance.h"
#include "libs/batching_model/step_end.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

constexpr double kMostSpread = 1.0;  // What a message may claim.

double SpreadOf(const wire::Deferral& deferral) {
  const double spread = deferral.step_spread();
  return std::isfinite(spread) ? std::clamp(spread, 0.0, kMostSpread) : 0.0;
}

LocalDeferral::Decision Launch(WaitOutcome outcome) { return {.outcome = outcome}; }

}  // namespace

void LocalDeferral::Observe(int rows, int64_t new_ids, absl::Duration elapsed) {
  times_.Observe(rows, new_ids, absl::ToDoubleMilliseconds(elapsed));
}

void LocalDeferral::SetPeerStep(const wire::PeerStep& step, absl::Time arrived) {
  peer_ = step;
  peer_started_ = arrived - absl::Microseconds(std::max<int64_t>(0, step.elapsed_us()));
  arrivals_ = 0;
}

void LocalDeferral::Detach() {
  deferral_.Clear();
  peer_.Clear();
  arrivals_ = 0;
  Cancel();
}

LocalDeferral::Decision LocalDeferral::Decide(const ReadyRows& ready, absl::Time now) {
  TR_CHECK(ready.rows >= 1);
  Decision decision = Judge(ready, now);
  if (decision.wait()) {
    waiting_ = true;
    return decision;
  }
  if (!waiting_) decision.outcome = WaitOutcome::kImmediate;
  Cancel();
  return decision;
}

LocalDeferral::Decision LocalDeferral::Judge(const ReadyRows& ready, absl::Time now) {
  if (!active() || !ready.may_wait) return Launch(WaitOutcome::kBalance);
  if (peer_.batch() <= 0) return Launch(WaitOutcome::kIdle);
  if (ready.full || ready.rows >= max_rows_) return Launch(WaitOutcome::kSize);
  const absl::Duration cap =
      std::min<absl::Duration>(absl::Microseconds(deferral_.cap_us()), kLongestDeferral);
  const absl::Time bound = std::min(ready.launch_by, ready.oldest_since + cap);
  if (now >= bound) return Launch(WaitOutcome::kBound);
  const absl::Time overdue =
      peer_started_ + absl::Milliseconds(LongestRun(absl::ToDoubleMilliseconds(peer_predicted()),
                                                    SpreadOf(deferral_)));
  if (now >= overdue) return Launch(WaitOutcome::kTimer);
  absl::Time until = std::min(bound, overdue);
  if (deferral_.least_rows() > 0 && ready.rows >= deferral_.least_rows()) {
    return Launch(WaitOutcome::kSize);
  }
  if (deferral_.wait_us() > 0) {
    const absl::Time end = ready.oldest_since + absl::Microseconds(deferral_.wait_us());
    if (now >= end) return Launch(WaitOutcome::kTimer);
    until = std::min(until, end);
  }
  if (deferral_.delay_balance() && !WorthWaiting(ready, now)) {
    return Launch(WaitOutcome::kBalance);
  }
  return {.wait_until = until};
}

bool LocalDeferral::active() const {
  const bool any =
      deferral_.least_rows() > 0 || deferral_.wait_us() > 0 || deferral_.delay_balance();
  return any && deferral_.cap_us() > 0;
}

bool LocalDeferral::WorthWaiting(const ReadyRows& ready, absl::Time now) const {
  const int coming = std::min(peer_.expected_returns() - arrivals_, max_rows_);
  if (coming <= 0) return false;
  const AwaitedStep step = {
      .wait_ms = MeanResidual(absl::ToDoubleMilliseconds(peer_predicted()),
                              absl::ToDoubleMilliseconds(now - peer_started_), SpreadOf(deferral_)),
      .rows = static_cast<double>(coming)};
  // Arriving rows are assumed to bring as many new ids as those that are here.
  const StartableRows startable = {
      .rows = ready.rows,
      .ids = ready.new_ids,
      .ids_per_arrival = static_cast<double>(ready.new_ids) / ready.rows,
      .mean_step_ms = 1e-3 * static_cast<double>(std::max<int64_t>(0, deferral_.mean_step_us()))};
  return WorthAwaiting(startable, {&step, 1},
                       [this](int rows, int64_t ids) {
                         return times_.Predict(std::min(rows, max_rows_), ids);
                       })
      .has_value();
}

absl::Duration LocalDeferral::peer_predicted() const {
  return absl::Microseconds(std::max<int64_t>(0, peer_.predicted_us()));
}

absl::Duration LocalDeferral::RoundTrip(int rows, int64_t new_ids) const {
  return absl::Milliseconds(times_.Predict(rows, new_ids)) + peer_predicted();
}

}  // namespace tokenrouter
