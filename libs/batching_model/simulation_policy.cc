// The launch decisions of a simulated worker: section 5 of the batching model.
#include <algorithm>
#include <optional>

#include "libs/batching_model/delay_balance.h"
#include "libs/batching_model/simulation.h"
#include "libs/batching_model/step_end.h"

namespace tokenrouter {

// One device: exactly one step at a time.
void Simulation::DecideShared() {
  Worker& small = side_[kS].front();
  Worker& large = side_[kL].front();
  if (!small.idle() || !large.idle()) return;
  if (small.ready.empty() && large.ready.empty()) return;
  const bool serves_large =
      small.ready.empty() ||
      (!large.ready.empty() && now_ >= small_first_until_ - kSameTime && ServesLarge(small, large));
  serves_large ? Launch(kL, &large) : Launch(kS, &small);
}

bool Simulation::ServesLarge(const Worker& small, const Worker& large) const {
  switch (policy_.kind) {
    case BatchingPolicy::Kind::kGreedy:
      return true;
    case BatchingPolicy::Kind::kStatic:
    case BatchingPolicy::Kind::kModel:
      return large.rows_ready() >= policy_.m_large;
    case BatchingPolicy::Kind::kFixedWait:
      return now_ - large.oldest_ready >= policy_.wait_large_ms - kSameTime;
    case BatchingPolicy::Kind::kLongestQueue:
      return large.rows_ready() >= small.rows_ready();
  }
  return true;
}

// Two devices, several workers of each side (docs/batching/theory.md, delay balance).
void Simulation::DecideTwo() {
  for (const Side side : {kS, kL}) {
    launches_[side].clear();
    for (int i = 0; i < static_cast<int>(side_[side].size()); ++i) {
      const Worker& worker = side_[side][i];
      const bool could = worker.idle() && !worker.ready.empty();
      launches_[side].push_back(could && !Waits(side, i));
    }
  }
  bool any = false;
  for (const Side side : {kS, kL}) {
    for (size_t i = 0; i < side_[side].size(); ++i) {
      if (!launches_[side][i]) continue;
      Launch(side, &side_[side][i]);
      any = true;
    }
  }
  if (any || !Stuck()) return;
  for (const Side side : {kS, kL}) {
    for (Worker& worker : side_[side]) {
      if (worker.ready.empty()) continue;
      Launch(side, &worker);
      any = true;
    }
    if (any) return;
  }
}

// True when every worker waits for another one and no timer will end the wait.
bool Simulation::Stuck() const {
  if (!arrivals_.empty()) return false;
  for (const auto& workers : side_) {
    for (const Worker& worker : workers) {
      if (!worker.idle() || worker.deadline != kNever) return false;
    }
  }
  return true;
}

bool Simulation::Waits(Side side, int index) {
  Worker& worker = side_[side][index];
  // A worker whose rows are all here has nothing to wait for. In the distributed form a small
  // worker knows less: it waits only for a large step that it was notified of.
  const bool all_here = worker.rows_ready() == worker.requests;
  if (policy_.kind != BatchingPolicy::Kind::kModel) {
    const bool peer_busy =
        setup_.distributed && side == kS ? !Running(side, index).empty() : !all_here;
    return WaitsByRule(side, &worker, peer_busy);
  }
  std::vector<Expected> expected = Running(side, index);
  if (side == kL) AddStarting(index, &expected);
  std::vector<AwaitedStep> steps;
  for (const Expected& step : expected) steps.push_back({step.remaining, step.arrivals});
  const StartableRows ready = {
      .rows = worker.rows_ready(),
      .ids = worker.ready_ids,
      .ids_per_arrival = side == kS ? 1 : 1 / setup_.r,
      .mean_step_ms = side == kS ? policy_.step_small_ms : policy_.step_large_ms};
  const std::optional<size_t> worth =
      WorthAwaiting(ready, steps, [&](int rows, int64_t ids) { return Cost(side, rows, ids); });
  if (!worth) return false;
  worker.deadline = expected[*worth].latest;
  return now_ < worker.deadline - kSameTime;
}

// Static thresholds and fixed waits.
bool Simulation::WaitsByRule(Side side, Worker* worker, bool peer_busy) const {
  if (policy_.kind == BatchingPolicy::Kind::kStatic) {
    return peer_busy && worker->rows_ready() < (side == kS ? policy_.m_small : policy_.m_large);
  }
  if (policy_.kind != BatchingPolicy::Kind::kFixedWait) return false;
  if (setup_.distributed && !peer_busy) return false;
  worker->deadline =
      worker->oldest_ready + (side == kS ? policy_.wait_small_ms : policy_.wait_large_ms);
  return now_ < worker->deadline - kSameTime;
}

// The step that the other side knows to be running.
const Simulation::Step* Simulation::Visible(const Worker& worker) const {
  const double seen = now_ - setup_.hop_ms;
  if (!worker.idle() && worker.step.start <= seen + kSameTime) return &worker.step;
  if (worker.last.end != kNever && worker.last.end > seen + kSameTime) return &worker.last;
  return nullptr;
}

// Steps of the other side with rows of this worker, those that end first.
std::vector<Simulation::Expected> Simulation::Running(Side side, int index) const {
  const double leaves = side == kS ? setup_.q : setup_.r;
  std::vector<Expected> expected;
  for (const Worker& peer : side_[Other(side)]) {
    const Step* const step = Visible(peer);
    if (step == nullptr || step->by_peer[index] == 0) continue;
    const double seen = step->start + setup_.hop_ms;
    const double latest = seen + LongestRun(step->predicted, setup_.noise_cv);
    if (now_ >= latest - kSameTime) continue;
    expected.push_back({.remaining = MeanResidual(step->predicted, now_ - seen, setup_.noise_cv),
                        .arrivals = leaves * step->by_peer[index],
                        .latest = latest});
  }
  std::sort(expected.begin(), expected.end(),
            [](const Expected& a, const Expected& b) { return a.remaining < b.remaining; });
  return expected;
}

// Small steps that start now, or as soon as the rows that are on their way have come: would holding
// the large rows for them be better?
void Simulation::AddStarting(int large, std::vector<Expected>* expected) const {
  for (size_t i = 0; i < side_[kS].size(); ++i) {
    const Worker& small = side_[kS][i];
    const bool starts = launches_[kS][i];
    if (!starts && (!small.idle() || !small.ready.empty() || small.inbound == 0)) continue;
    const int rows = starts ? small.rows_ready() : small.inbound;
    const double handoff = setup_.hop_ms * (starts ? 1 : 2);
    const double share = 1.0 / static_cast<double>(side_[kL].size());
    const double here =
        static_cast<double>(std::count_if(small.ready.begin(), small.ready.end(), [&](int request) {
          return home_[kL][request] == large;
        }));
    const double mine = starts ? here : rows * share;
    if (mine == 0) continue;
    const double step = Cost(kS, rows, rows);
    expected->push_back({.remaining = step + handoff,
                         .arrivals = setup_.r * mine,
                         .latest = now_ + handoff + LongestRun(step, setup_.noise_cv)});
  }
}

}  // namespace tokenrouter
