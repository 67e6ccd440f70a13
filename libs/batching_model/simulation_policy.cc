// The launch decisions of a simulated worker: section 5 of the batching model.
#include <algorithm>

#include "libs/batching_model/delay_balance.h"
#include "libs/batching_model/simulation.h"

namespace tokenrouter {
namespace {

// At most this many of the other side's running steps are considered, those that end first.
constexpr size_t kMostSteps = 8;

}  // namespace

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

// decide() of section 5a, for several workers of each side.
void Simulation::DecideTwo() {
  for (const Side side : {kS, kL}) {
    launches_[side].clear();
    for (int i = 0; i < static_cast<int>(side_[side].size()); ++i) {
      const Worker& worker = side_[side][i];
      const bool could = worker.idle() && !worker.ready.empty();
      launches_[side].push_back(could && !Waits(side, i));
    }
  }
  const bool knows_both = !setup_.distributed && policy_.kind == BatchingPolicy::Kind::kModel;
  if (knows_both) YieldToShortLargeSteps();
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
  const bool peer_busy = !expected.empty();
  if (side == kL) AddStarting(index, &expected);
  if (!WaitsFor(side, worker, expected)) return false;
  // The first wait arms a timer, which bounds it when the other side's step overruns. A step that
  // starts at this moment arms none, since it is considered again while it runs.
  if (worker.deadline == kNever && peer_busy) {
    const double arrivals = expected.front().arrivals;
    const double tau = WaitThreshold(side, worker, arrivals);
    worker.deadline = now_ + (side == kL ? std::max(tau, expected.front().step) : tau);
  }
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

// True when waiting until the first, second, ... of the steps has delivered its rows pays off.
bool Simulation::WaitsFor(Side side, const Worker& worker,
                          const std::vector<Expected>& expected) const {
  double arrivals = 0;
  for (const Expected& step : expected) {
    arrivals += step.arrivals;
    if (step.remaining < WaitThreshold(side, worker, arrivals)) return true;
  }
  return false;
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
    const double elapsed = now_ - setup_.hop_ms - step->start;
    expected.push_back({.remaining = MeanResidual(step->predicted, elapsed, setup_.noise_cv),
                        .arrivals = leaves * step->by_peer[index],
                        .step = step->predicted});
  }
  std::sort(expected.begin(), expected.end(),
            [](const Expected& a, const Expected& b) { return a.remaining < b.remaining; });
  if (expected.size() > kMostSteps) expected.resize(kMostSteps);
  return expected;
}

// Small steps that start now, or as soon as the rows that are on their way have come: would holding
// the large rows for them be better?
void Simulation::AddStarting(int large, std::vector<Expected>* expected) const {
  for (size_t i = 0; i < side_[kS].size() && expected->size() < kMostSteps; ++i) {
    const Worker& small = side_[kS][i];
    const bool starts = launches_[kS][i];
    if (!starts && (!small.idle() || !small.ready.empty() || small.inbound == 0)) continue;
    const int rows = starts ? small.rows_ready() : small.inbound;
    const double hops = setup_.hop_ms * (starts ? 1 : 2);
    const double share = 1.0 / static_cast<double>(side_[kL].size());
    const double here =
        static_cast<double>(std::count_if(small.ready.begin(), small.ready.end(), [&](int request) {
          return home_[kL][request] == large;
        }));
    const double mine = starts ? here : rows * share;
    if (mine == 0) continue;
    const double step = Cost(kS, rows, rows);
    expected->push_back({.remaining = step + hops, .arrivals = setup_.r * mine, .step = step});
  }
}

// When both sides are idle and the large step is the shorter one, a small worker may gain by
// waiting for it.
void Simulation::YieldToShortLargeSteps() {
  for (size_t i = 0; i < side_[kS].size(); ++i) {
    const Worker& small = side_[kS][i];
    if (!launches_[kS][i]) continue;
    const double small_time = Cost(kS, small.rows_ready(), small.rows_ready());
    for (size_t j = 0; j < side_[kL].size() && launches_[kS][i]; ++j) {
      if (!launches_[kL][j]) continue;
      const Worker& large = side_[kL][j];
      const auto mine = std::count_if(large.ready.begin(), large.ready.end(), [&](int request) {
        return home_[kS][request] == static_cast<int>(i);
      });
      const double time = Cost(kL, large.rows_ready(), static_cast<double>(large.ready_ids));
      if (mine == 0 || time >= small_time) continue;
      const double arrivals = setup_.q * static_cast<double>(mine);
      if (time + setup_.hop_ms < WaitThreshold(kS, small, arrivals)) launches_[kS][i] = false;
    }
  }
}

// tau* of the rows ready here against that many expected arrivals.
double Simulation::WaitThreshold(Side side, const Worker& worker, double arrivals) const {
  const int k = worker.rows_ready(), n = std::max(1, static_cast<int>(arrivals + 0.5));
  const double own = static_cast<double>(worker.ready_ids);
  const double coming = side == kS ? n : n / setup_.r;
  return DelayBalanceThreshold({.ready = Cost(side, k, own),
                                .arrivals = Cost(side, n, coming),
                                .together = Cost(side, k + n, own + coming)},
                               k, arrivals, policy_.beta);
}

}  // namespace tokenrouter
