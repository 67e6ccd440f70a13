#include "libs/worker/step/local_deferral.h"

#include <algorithm>
#include <cmath>

#include "libs/batching_model/delay_balance.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

// A step counts as overdue this many spreads after its predicted end. The spread is never taken as
// less than kLeastSpread, since the message and the rows need time to travel too.
constexpr double kOverdueSpreads = 3.0;
constexpr double kLeastSpread = 0.02;
constexpr double kMostSpread = 1.0;

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

void LocalDeferral::Cancel() {
  waiting_ = false;
  balance_end_ = absl::InfiniteFuture();
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
  const double most = 1.0 + kOverdueSpreads * std::max(SpreadOf(deferral_), kLeastSpread);
  const absl::Time overdue = peer_started_ + most * peer_predicted();
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
  if (deferral_.beta() > 0) {
    if (now >= balance_end_) return Launch(WaitOutcome::kTimer);
    const absl::Time end = BalanceEnd(ready, now);
    if (now >= end) return Launch(WaitOutcome::kBalance);
    balance_end_ = std::min(balance_end_, end);
    until = std::min(until, balance_end_);
  }
  return {.wait_until = until};
}

bool LocalDeferral::active() const {
  const bool any = deferral_.least_rows() > 0 || deferral_.wait_us() > 0 || deferral_.beta() > 0;
  return any && deferral_.cap_us() > 0 && std::isfinite(deferral_.beta());
}

absl::Time LocalDeferral::BalanceEnd(const ReadyRows& ready, absl::Time now) const {
  const int coming = peer_.expected_returns() - arrivals_;
  if (coming <= 0) return absl::InfinitePast();
  const double threshold = Threshold(ready, coming);
  const double remaining =
      MeanResidual(absl::ToDoubleMilliseconds(peer_predicted()),
                   absl::ToDoubleMilliseconds(now - peer_started_), SpreadOf(deferral_));
  return remaining < threshold ? now + absl::Milliseconds(threshold) : absl::InfinitePast();
}

double LocalDeferral::Threshold(const ReadyRows& ready, int arrivals) const {
  // Arriving rows are assumed to bring as many new ids as those that are here.
  const double ids_per_row = static_cast<double>(ready.new_ids) / ready.rows;
  const auto time = [&](int rows) {
    return times_.Predict(rows, std::llround(ids_per_row * rows));
  };
  const int n = std::min(arrivals, max_rows_);
  const BalanceTimes times = {.ready = times_.Predict(ready.rows, ready.new_ids),
                              .arrivals = time(n),
                              .together = time(std::min(ready.rows + n, max_rows_))};
  return DelayBalanceThreshold(times, ready.rows, arrivals, deferral_.beta());
}

absl::Duration LocalDeferral::peer_predicted() const {
  return absl::Microseconds(std::max<int64_t>(0, peer_.predicted_us()));
}

absl::Duration LocalDeferral::RoundTrip(int rows, int64_t new_ids) const {
  return absl::Milliseconds(times_.Predict(rows, new_ids)) + peer_predicted();
}

}  // namespace tokenrouter
