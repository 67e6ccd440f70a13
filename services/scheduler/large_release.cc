#include "services/scheduler/large_release.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libs/batching_model/delay_balance.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

ReleaseDecision Release(WaitOutcome outcome) { return {.release = true, .outcome = outcome}; }

int64_t UnseenIds(const ReleaseSnapshot& snapshot) {
  int64_t ids = 0;
  for (const auto& row : snapshot.waiting) ids += row.unseen_ids;
  return ids;
}

double Predict(const StepTimeEstimator* curve, int rows, int64_t ids) {
  return curve == nullptr ? 0.0 : curve->Predict(rows, ids);
}

// The earliest time by which some row must be on its way.
absl::Time EarliestBound(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  const absl::Duration step = absl::Milliseconds(
      Predict(rule.large, static_cast<int>(snapshot.waiting.size()), UnseenIds(snapshot)));
  absl::Time earliest = absl::InfiniteFuture();
  for (const auto& row : snapshot.waiting) {
    earliest = std::min(earliest, ServeBy(row.bound, step + rule.hop));
  }
  return earliest;
}

// tau* of the waiting rows against `arrivals` more, in milliseconds.
double WaitThreshold(const ReleaseSnapshot& snapshot, const ReleaseRule& rule, double arrivals) {
  const int k = static_cast<int>(snapshot.waiting.size());
  const int n = std::max(1, static_cast<int>(arrivals + 0.5));
  const int64_t ids = UnseenIds(snapshot);
  // A routed row brings everything that the small model wrote since the last visit.
  const auto coming = static_cast<int64_t>(std::lround(n / rule.routed));
  return DelayBalanceThreshold({.ready = Predict(rule.large, k, ids),
                                .arrivals = Predict(rule.large, n, coming),
                                .together = Predict(rule.large, k + n, ids + coming)},
                               k, arrivals, rule.policy.beta);
}

// Rows of the large worker's own step that will run on: they start its next step, wait or not.
double Staying(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  return snapshot.own.running() ? (1 - rule.returned) * snapshot.own.rows : 0.0;
}

struct Event {
  absl::Duration remaining;
  absl::Duration predicted;
  int32_t rows = 0;
};

// Ends of small steps that can be foreseen, soonest first.
std::vector<Event> EventsOf(const ReleaseSnapshot& snapshot, double spread) {
  std::vector<Event> events;
  for (const RunningStep& step : snapshot.small) {
    if (!step.running() || EndUnknown(step, spread, snapshot.now)) continue;
    events.push_back({Remaining(step, spread, snapshot.now), step.predicted, step.rows});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.remaining < b.remaining; });
  if (events.size() > kMaxEvents) events.resize(kMaxEvents);
  return events;
}

// Waits for the first of the coming ends that is near enough for what arrives until then.
ReleaseDecision Balance(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  if (snapshot.armed <= snapshot.now) return Release(WaitOutcome::kTimer);
  if (snapshot.busy_small == 0) return Release(WaitOutcome::kIdle);
  if (Staying(snapshot, rule) >= 0.5) return Release(WaitOutcome::kBalance);
  const bool known = rule.small != nullptr && rule.large != nullptr &&
                     rule.large->observations() > 0 && rule.routed > 0;
  if (!known) return Release(WaitOutcome::kImmediate);
  const std::vector<Event> events = EventsOf(snapshot, rule.small->RelativeSpread());
  if (events.empty()) return Release(WaitOutcome::kImmediate);
  double arrivals = 0;
  for (const Event& event : events) {
    arrivals += rule.routed_lower * event.rows;
    const absl::Duration threshold = absl::Milliseconds(WaitThreshold(snapshot, rule, arrivals));
    if (event.remaining >= threshold) continue;
    ReleaseDecision wait;
    wait.armed = snapshot.armed;
    if (wait.armed == absl::InfiniteFuture()) {
      wait.armed = snapshot.now + std::max(threshold, event.predicted);
    }
    wait.until = wait.armed;
    return wait;
  }
  return Release(WaitOutcome::kBalance);
}

ReleaseDecision ByPolicy(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  ReleaseDecision wait;
  switch (rule.policy.kind) {
    case Kind::kStatic:
      if (static_cast<double>(snapshot.waiting.size()) + Staying(snapshot, rule) + 0.5 >
          rule.policy.m_large) {
        return Release(WaitOutcome::kSize);
      }
      if (snapshot.busy_small == 0) return Release(WaitOutcome::kIdle);
      return wait;
    case Kind::kFixedWait: {
      absl::Time oldest = snapshot.waiting[0].since;
      for (const auto& row : snapshot.waiting) oldest = std::min(oldest, row.since);
      wait.until = oldest + absl::Milliseconds(rule.policy.wait_large_ms);
      return snapshot.now >= wait.until ? Release(WaitOutcome::kTimer) : wait;
    }
    case Kind::kModel:
      return Balance(snapshot, rule);
    case Kind::kGreedy:
    case Kind::kLongestQueue:
      break;
  }
  return Release(WaitOutcome::kImmediate);
}

}  // namespace

bool MayWait(const BatchingPolicy& policy) {
  return policy.kind != Kind::kGreedy && policy.kind != Kind::kLongestQueue;
}

ReleaseDecision DecideRelease(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  TR_CHECK(!snapshot.waiting.empty());
  if (!MayWait(rule.policy)) return Release(WaitOutcome::kImmediate);
  const absl::Time bound = EarliestBound(snapshot, rule);
  if (snapshot.now >= bound) return Release(WaitOutcome::kBound);
  // Less what ids beyond one a row may take: rows that come too early wait at the worker, rows that
  // come too late find it idle.
  const RunningStep& own = snapshot.own;
  const double beyond =
      Predict(rule.large, own.rows, own.ids) - Predict(rule.large, own.rows, own.rows);
  const absl::Time hold =
      own.since + own.predicted - absl::Milliseconds(std::max(0.0, beyond)) - rule.hop;
  ReleaseDecision decision;
  if (snapshot.own.running() && snapshot.now < hold) {
    decision.until = hold;
  } else {
    decision = ByPolicy(snapshot, rule);
  }
  if (!decision.release) decision.until = std::min(decision.until, bound);
  return decision;
}

}  // namespace tokenrouter
