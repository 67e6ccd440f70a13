#include "services/scheduler/dispatch/release_policy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libs/batching_model/delay_balance.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;

ReleaseDecision Release(WaitOutcome outcome) { return {.release = true, .outcome = outcome}; }

int64_t UncomputedIds(const ReleaseSnapshot& snapshot) {
  int64_t ids = 0;
  for (const auto& row : snapshot.waiting) ids += row.uncomputed_ids;
  return ids;
}

double Predict(const StepTimeEstimator* curve, int rows, int64_t ids) {
  return curve == nullptr ? 0.0 : curve->Predict(rows, ids);
}

// The earliest time by which some row must be released.
absl::Time EarliestBound(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  const absl::Duration step = absl::Milliseconds(
      Predict(rule.large, static_cast<int>(snapshot.waiting.size()), UncomputedIds(snapshot)));
  absl::Time earliest = absl::InfiniteFuture();
  for (const auto& row : snapshot.waiting) {
    earliest = std::min(earliest, ServeBy(row.bound, step + rule.handoff_latency));
  }
  return earliest;
}

// The threshold tau* of the waiting rows against `arrivals` more, in milliseconds.
double WaitThreshold(const ReleaseSnapshot& snapshot, const ReleaseRule& rule, double arrivals) {
  const int k = static_cast<int>(snapshot.waiting.size());
  const int n = std::max(1, static_cast<int>(arrivals + 0.5));
  const int64_t ids = UncomputedIds(snapshot);
  // A routed row brings everything that the small model wrote since the row's last visit.
  const auto coming = static_cast<int64_t>(std::lround(n / rule.routed));
  return DelayBalanceThreshold({.ready = Predict(rule.large, k, ids),
                                .arrivals = Predict(rule.large, n, coming),
                                .together = Predict(rule.large, k + n, ids + coming)},
                               k, arrivals, rule.policy.beta);
}

// Rows of the large worker's own step that continue decoding: they start its next step in any case.
double Staying(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  return snapshot.own.running() ? (1 - rule.returned) * snapshot.own.rows : 0.0;
}

// Rows of that step that return to the small side.
double Returning(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  return snapshot.own.running() ? rule.returned * snapshot.own.rows : 0.0;
}

// Whether the large worker goes on by itself when its own step ends. Rows that reach it a little
// too late then wait for a whole step, and holding them back would fill no step.
bool GoesOn(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  return snapshot.own.running() && (Staying(snapshot, rule) >= 0.5 || snapshot.background_ids > 0);
}

bool NothingComes(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  return snapshot.busy_small == 0 && Returning(snapshot, rule) < 0.5;
}

// How long rows may still be held so that they reach the large worker as its own step of
// `predicted` ends.
absl::Duration UntilFree(const ReleaseSnapshot& snapshot, const ReleaseRule& rule,
                         absl::Duration predicted) {
  if (!snapshot.own.running()) return absl::ZeroDuration();
  const absl::Duration left = snapshot.own.since + predicted - rule.handoff_latency - snapshot.now;
  return std::max(absl::ZeroDuration(), left);
}

// The shortest time that its own step can take: one id per row.
absl::Duration LeastOfOwn(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  const RunningStep& own = snapshot.own;
  const double beyond =
      Predict(rule.large, own.rows, own.ids) - Predict(rule.large, own.rows, own.rows);
  return own.predicted - absl::Milliseconds(std::max(0.0, beyond));
}

// The end of a small step.
struct Event {
  absl::Duration wait;  // The cost of waiting for it: time while the own step runs costs nothing.
  absl::Duration predicted;  // The predicted time of the small step.
  int32_t rows = 0;
};

// Predictable ends, soonest first: of the running small steps, and when all of those end before the
// large worker's own step, of the small step that its rows will start.
std::vector<Event> EventsOf(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  const absl::Duration free = UntilFree(snapshot, rule, snapshot.own.predicted);
  const double spread = rule.small->RelativeSpread();
  std::vector<Event> events;
  absl::Duration last = absl::ZeroDuration();
  for (const RunningStep& step : snapshot.small) {
    if (!step.running() || EndUnknown(step, spread, snapshot.now)) continue;
    const absl::Duration wait = Remaining(step, spread, snapshot.now) - free;
    events.push_back({std::max(absl::ZeroDuration(), wait), step.predicted, step.rows});
    last = std::max(last, wait);
  }
  const auto back = static_cast<int32_t>(std::lround(Returning(snapshot, rule)));
  if (back > 0 && last == absl::ZeroDuration()) {
    // The handoff latency counts both ways.
    const absl::Duration step =
        2 * rule.handoff_latency + absl::Milliseconds(rule.small->Predict(back, back));
    events.push_back({step, step, back});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.wait < b.wait; });
  if (events.size() > kMaxEvents) events.resize(kMaxEvents);
  return events;
}

// Waits for the first of the predicted ends that is near enough for the rows that arrive until
// then.
ReleaseDecision Balance(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  if (snapshot.armed <= snapshot.now) return Release(WaitOutcome::kTimer);
  if (NothingComes(snapshot, rule)) return Release(WaitOutcome::kIdle);
  if (GoesOn(snapshot, rule)) return Release(WaitOutcome::kBalance);
  const bool known = rule.small != nullptr && rule.large != nullptr &&
                     rule.large->observations() > 0 && rule.routed > 0;
  if (!known) return Release(WaitOutcome::kImmediate);
  const std::vector<Event> events = EventsOf(snapshot, rule);
  if (events.empty()) return Release(WaitOutcome::kImmediate);
  double arrivals = 0;
  for (const Event& event : events) {
    arrivals += rule.routed_lower * event.rows;
    const absl::Duration threshold = absl::Milliseconds(WaitThreshold(snapshot, rule, arrivals));
    if (event.wait >= threshold) continue;
    ReleaseDecision wait;
    wait.armed = snapshot.armed;
    if (wait.armed == absl::InfiniteFuture()) {
      wait.armed = snapshot.now + UntilFree(snapshot, rule, snapshot.own.predicted) +
                   std::max(threshold, event.predicted);
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
      if (NothingComes(snapshot, rule)) return Release(WaitOutcome::kIdle);
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
  ReleaseDecision decision;
  // Rows released too early wait at the worker; rows released too late find it idle.
  const absl::Duration hold = UntilFree(snapshot, rule, LeastOfOwn(snapshot, rule));
  if (hold > absl::ZeroDuration() && !GoesOn(snapshot, rule)) {
    decision.until = snapshot.now + hold;
  } else {
    decision = ByPolicy(snapshot, rule);
  }
  if (!decision.release) decision.until = std::min(decision.until, bound);
  return decision;
}

}  // namespace tokenrouter
