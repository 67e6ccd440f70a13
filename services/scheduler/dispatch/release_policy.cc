#include "services/scheduler/dispatch/release_policy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "libs/batching_model/delay_balance.h"
#include "libs/batching_model/step_end.h"
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

// What the rows may wait for, the soonest first.
struct Awaited {
  std::vector<AwaitedStep> steps;
  std::vector<absl::Time> latest;  // By step: when to give up on it.
  bool overdue = false;            // A small step has run for too long to be awaited.
};

// The small step that the rows of the large worker's own step will start. None if the small side's
// steps are unknown.
std::optional<RunningStep> Foreseen(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  const auto rows = static_cast<int32_t>(std::lround(Returning(snapshot, rule)));
  if (rows <= 0) return std::nullopt;
  const absl::Duration step = absl::Milliseconds(rule.small->Predict(rows, rows));
  if (step <= absl::ZeroDuration()) return std::nullopt;
  // The handoff latency counts both ways.
  return RunningStep{.since = snapshot.now + UntilFree(snapshot, rule, snapshot.own.predicted),
                     .rows = rows,
                     .ids = rows,
                     .predicted = 2 * rule.handoff_latency + step};
}

// The ends of the running small steps, and when all of those come before the end of the large
// worker's own step, of the small step that its rows will start. Waiting costs only the time in
// which the large worker could run.
Awaited AwaitedBy(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  const absl::Time free = snapshot.now + UntilFree(snapshot, rule, snapshot.own.predicted);
  const double spread = rule.small->RelativeSpread();
  Awaited awaited;
  std::vector<std::pair<absl::Time, RunningStep>> ends;
  absl::Time last = free;
  for (const RunningStep& step : snapshot.small) {
    if (!step.running() || step.predicted <= absl::ZeroDuration()) continue;
    if (snapshot.now >= LatestEnd(step, spread)) {
      awaited.overdue = true;
      continue;
    }
    ends.emplace_back(snapshot.now + Remaining(step, spread, snapshot.now), step);
    last = std::max(last, ends.back().first);
  }
  const std::optional<RunningStep> foreseen = Foreseen(snapshot, rule);
  if (foreseen && last == free) ends.emplace_back(free + foreseen->predicted, *foreseen);
  std::sort(ends.begin(), ends.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [end, step] : ends) {
    const absl::Duration wait = std::max(absl::ZeroDuration(), end - free);
    awaited.steps.push_back({absl::ToDoubleMilliseconds(wait), rule.routed_lower * step.rows});
    awaited.latest.push_back(LatestEnd(step, spread));
  }
  return awaited;
}

// Waits for the first of the predicted ends that is worth it (delay_balance.h).
ReleaseDecision Balance(const ReleaseSnapshot& snapshot, const ReleaseRule& rule) {
  if (NothingComes(snapshot, rule)) return Release(WaitOutcome::kIdle);
  if (GoesOn(snapshot, rule)) return Release(WaitOutcome::kBalance);
  const bool known = rule.small != nullptr && rule.large != nullptr &&
                     rule.large->observations() > 0 && rule.routed > 0;
  if (!known) return Release(WaitOutcome::kImmediate);
  const Awaited awaited = AwaitedBy(snapshot, rule);
  if (awaited.steps.empty()) {
    return Release(awaited.overdue ? WaitOutcome::kTimer : WaitOutcome::kImmediate);
  }
  const StartableRows ready = {
      .rows = static_cast<int>(snapshot.waiting.size()),
      .ids = UncomputedIds(snapshot),
      // A routed row brings everything that the small model wrote since the row's last visit.
      .ids_per_arrival = 1 / rule.routed,
      .mean_step_ms = rule.policy.step_large_ms};
  const std::optional<size_t> worth = WorthAwaiting(
      ready, awaited.steps, [&](int rows, int64_t ids) { return rule.large->Predict(rows, ids); });
  if (!worth) return Release(WaitOutcome::kBalance);
  return {.until = awaited.latest[*worth]};
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
