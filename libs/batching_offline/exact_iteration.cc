#include "libs/batching_offline/exact_iteration.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "libs/batching_model/binomial.h"

namespace tokenrouter {
namespace {

constexpr int kMostSweeps = 2000;
constexpr int kRateFixedFor = 20;    // Sweeps before the rate is corrected.
constexpr double kTolerance = 1e-6;  // Of the rate, relative.
constexpr double kLeastRate = 1e-3;  // As a share of the fastest.
constexpr double kTie = 1e-12;       // Launching must be better by this.
constexpr int kSimulatedDecisions = 200000;
constexpr int kSmall = 0, kLarge = 1;

}  // namespace

ExactIteration::ExactIteration(const ExactProblem& problem, const Pace& pace)
    : problem_(problem), pace_(pace), n_(problem.requests) {
  for (const int side : {kSmall, kLarge}) {
    const StepTimes times = side == kSmall ? problem.small : problem.large;
    double best = 0;  // Rows per grid step of this side.
    for (int b = 0; b <= n_; ++b) {
      const auto steps = static_cast<int>(std::lround(times[b] / problem.grid_ms));
      duration_[side].push_back(std::max(1, steps));
      if (b > 0) longest_ = std::max(longest_, duration_[side][b]);
      best = std::max(best, static_cast<double>(b) / duration_[side][b]);
      leaving_[side].push_back(BinomialMass(b, side == kSmall ? problem.r : problem.q));
    }
    fastest_ += best;
  }
  busy_.resize(At(1, n_, n_, longest_) + 1);
  next_busy_ = busy_;
  launches_.resize(busy_.size());
  idle_.resize(static_cast<size_t>(n_) + 1);
  next_idle_ = idle_;
  idle_action_.resize(idle_.size());
  rate_ = 0.3 * n_ / duration_[kSmall][n_];
}

// `side` starts its `ready` rows while the other runs `running` rows for `left` > 0 more.
ExactIteration::Value ExactIteration::Launch(int side, int ready, int running, int left) const {
  const int duration = duration_[side][ready], other = 1 - side;
  if (duration <= left) {
    Value value = After(duration, ready);
    const std::vector<double>& leaving = leaving_[side][ready];
    for (int j = 0; j <= ready; ++j) {
      value.Add(leaving[j], busy_[At(side, ready - j, running, left - duration)]);
    }
    return value;
  }
  Value value = After(left, ready);
  const int other_ready = n_ - ready - running;
  const std::vector<double>& leaving = leaving_[other][running];
  for (int j = 0; j <= running; ++j) {
    value.Add(leaving[j], busy_[At(other, other_ready + running - j, ready, duration - left)]);
  }
  return value;
}

void ExactIteration::SweepSide(int side, int running, int ready) {
  const int other = 1 - side;
  Value ended;  // The other side's step ends and both are idle.
  for (int j = 0; j <= running; ++j) {
    const int own = ready + j;
    ended.Add(leaving_[other][running][j], idle_[side == kSmall ? own : n_ - own]);
  }
  const auto& fixed = problem_.fixed;
  for (int left = 0; left <= duration_[other][running]; ++left) {
    Value best = After(left, 0);
    best.Add(1, ended);
    bool launch = false;
    if (left > 0 && ready > 0) {
      const Value started = Launch(side, ready, running, left);
      launch = fixed ? ready >= (side == kSmall ? fixed->small : fixed->large)
                     : started.rows > best.rows + kTie;
      if (launch) best = started;
    }
    const size_t at = At(side, ready, running, left);
    next_busy_[at] = best;
    launches_[at] = launch;
  }
}

ExactIteration::Value ExactIteration::ValueOfBothIdle(int small_ready, int action) const {
  const int large_ready = n_ - small_ready;
  if (action == 3) {
    Value value = Launch(kSmall, small_ready, large_ready, duration_[kLarge][large_ready]);
    value.rows += large_ready;
    return value;
  }
  const int side = action == 1 ? kSmall : kLarge;
  const int ready = side == kSmall ? small_ready : large_ready;
  Value value = After(duration_[side][ready], ready);
  for (int j = 0; j <= ready; ++j) {
    value.Add(leaving_[side][ready][j], idle_[side == kSmall ? small_ready - j : small_ready + j]);
  }
  return value;
}

int ExactIteration::FixedAction(int small_ready) const {
  const int small = small_ready > 0 && small_ready >= problem_.fixed->small ? 1 : 0;
  const int large = small_ready < n_ && n_ - small_ready >= problem_.fixed->large ? 2 : 0;
  if (small + large > 0) return small + large;
  return small_ready > 0 ? 1 : 2;  // One side must launch.
}

ExactIteration::Best ExactIteration::DecideBothIdle(int small_ready) const {
  Best best;
  for (int action = 1; action <= 3; ++action) {
    if ((action & 1) && small_ready == 0) continue;
    if ((action & 2) && small_ready == n_) continue;
    if (problem_.fixed && action != FixedAction(small_ready)) continue;
    const Value value = ValueOfBothIdle(small_ready, action);
    if (best.action == 0 || value.rows > best.value.rows) best = {value, action};
  }
  return best;
}

void ExactIteration::Blend(Value* held, const Value& next, const Value& reference) const {
  held->rows += pace_.values * (next.rows - held->rows) - reference.rows;
  held->time += pace_.values * (next.time - held->time) - reference.time;
}

void ExactIteration::Sweep() {
  for (const int side : {kSmall, kLarge}) {
    for (int running = 1; running <= n_; ++running) {
      for (int ready = 0; ready <= n_ - running; ++ready) SweepSide(side, running, ready);
    }
  }
  for (int ready = 0; ready <= n_; ++ready) {
    const Best best = DecideBothIdle(ready);
    next_idle_[ready] = best.value;
    idle_action_[ready] = best.action;
  }
}

bool ExactIteration::Run() {
  for (sweeps_ = 0; sweeps_ < kMostSweeps; ++sweeps_) {
    Sweep();
    double low = INFINITY, high = -INFINITY, drift = 0, elapsed = 0;
    for (int ready = 0; ready <= n_; ++ready) {
      const double moved = next_idle_[ready].rows - idle_[ready].rows;
      low = std::min(low, moved);
      high = std::max(high, moved);
      drift += moved;
      elapsed += next_idle_[ready].time - idle_[ready].time;
    }
    // All values are kept relative to that of everything ready on the small side.
    Value reference = idle_[n_];
    reference.rows += pace_.values * (next_idle_[n_].rows - reference.rows);
    reference.time += pace_.values * (next_idle_[n_].time - reference.time);
    for (int ready = 0; ready <= n_; ++ready) Blend(&idle_[ready], next_idle_[ready], reference);
    for (size_t i = 0; i < busy_.size(); ++i) Blend(&busy_[i], next_busy_[i], reference);
    if (sweeps_ <= kRateFixedFor || elapsed <= 0) continue;
    const double correction = drift / elapsed;
    rate_ = std::clamp(rate_ + pace_.rate * correction, kLeastRate * fastest_, fastest_);
    const double mean_drift = std::abs(drift / (n_ + 1));
    if (std::abs(correction) < kTolerance * rate_ &&
        high - low < 100 * kTolerance * std::max(1.0, mean_drift) + 1e-5) {
      return true;
    }
  }
  return false;
}

ExactSolution ExactIteration::Solution() const {
  ExactSolution solution;
  solution.rows_per_s = 1000.0 * rate_ / problem_.grid_ms;
  solution.sweeps = sweeps_;
  for (const int action : idle_action_) {
    solution.both_idle.push_back(static_cast<BothIdle>(action));
  }
  for (const int side : {kSmall, kLarge}) {
    auto& table = solution.wait_below[side];
    table.assign(static_cast<size_t>(n_) + 1, std::vector<int>(static_cast<size_t>(n_) + 1, 0));
    for (int running = 1; running < n_; ++running) {
      for (int ready = 1; ready <= n_ - running; ++ready) {
        int left = 1;
        while (left <= duration_[1 - side][running] && !launches_[At(side, ready, running, left)]) {
          ++left;
        }
        table[ready][running] = left;
      }
    }
  }
  return solution;
}

double ExactIteration::SimulateRows() const {
  std::mt19937_64 generator(1);
  const auto leave = [&](int side, int rows) {
    double u = std::uniform_real_distribution<double>(0, 1)(generator);
    int j = 0;
    while (j < rows && (u -= leaving_[side][rows][j]) > 0) ++j;
    return j;
  };
  int ready[2] = {n_, 0}, running[2] = {0, 0}, left[2] = {0, 0};
  double rows = 0, time = 0;
  const auto start = [&](int side) {
    rows += ready[side];
    running[side] = ready[side];
    left[side] = duration_[side][ready[side]];
    ready[side] = 0;
  };
  for (int i = 0; i < kSimulatedDecisions; ++i) {
    const bool both_idle = running[kSmall] + running[kLarge] == 0;
    const int action = both_idle ? idle_action_[ready[kSmall]] : 0;
    for (const int side : {kSmall, kLarge}) {
      const int other = 1 - side;
      const bool may = !both_idle && running[side] == 0 && ready[side] > 0 && left[other] > 0 &&
                       launches_[At(side, ready[side], running[other], left[other])];
      if (may || (action >> side & 1)) start(side);
    }
    int next = running[kSmall] > 0 ? left[kSmall] : left[kLarge];
    if (running[kLarge] > 0) next = std::min(next, left[kLarge]);
    time += next;
    for (const int side : {kSmall, kLarge}) {
      if (running[side] == 0 || (left[side] -= next) > 0) continue;
      const int leaving = leave(side, running[side]);
      ready[side] += running[side] - leaving;
      ready[1 - side] += leaving;
      running[side] = 0;
    }
  }
  return 1000.0 * rows / time / problem_.grid_ms;
}

}  // namespace tokenrouter
