#include "libs/batching_model/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tokenrouter {
namespace {

constexpr double kWarmUp = 0.1;       // Share of the time that is not counted.
constexpr size_t kMaxGaps = 1 << 20;  // Gaps kept for the percentiles.
constexpr int kNoRequest = -1;

double Share(int64_t done, int64_t limit) {
  return static_cast<double>(done) / static_cast<double>(limit);
}

}  // namespace

Simulation::Simulation(const SimulationSetup& setup, const BatchingPolicy& policy)
    : setup_(setup),
      policy_(policy),
      random_(setup.seed),
      unseen_(setup.requests, 1),
      last_commit_(setup.requests, 0.0) {
  side_[kS].resize(setup.small_workers);
  side_[kL].resize(setup.large_workers);
  for (int request = 0; request < setup.requests; ++request) {
    home_[kS].push_back(request % setup.small_workers);
    home_[kL].push_back(request / setup.small_workers % setup.large_workers);
    for (const Side side : {kS, kL}) ++Home(side, request).requests;
  }
  for (const Side side : {kS, kL}) {
    for (Worker& worker : side_[side]) {
      worker.step.by_peer.assign(side_[Other(side)].size(), 0);
      worker.last.by_peer = worker.step.by_peer;
    }
  }
  const int inside = setup.desynchronised ? setup.requests / 2 : 0;
  for (int request = inside; request < setup.requests; ++request) MakeReady(kS, request);
  StartInside(inside);
}

SimulationResult Simulation::Run() {
  double measured_from = 0;
  for (double progress = 0; progress < 1; progress = Progress()) {
    if (measured_from == 0 && progress > kWarmUp) {
      measured_from = now_;
      ResetCounts();
    }
    setup_.shared_device ? DecideShared() : DecideTwo();
    Advance();
  }
  return Report(now_ - measured_from);
}

// Share of the run that is over, by whichever of its limits comes first.
double Simulation::Progress() const {
  double progress = now_ / setup_.duration_ms;
  if (setup_.max_steps > 0) progress = std::max(progress, Share(steps_, setup_.max_steps));
  if (setup_.max_rows > 0) progress = std::max(progress, Share(rows_, setup_.max_rows));
  return progress;
}

// The first `rows` requests are inside large steps at a random phase.
void Simulation::StartInside(int rows) {
  for (int request = 0; request < rows; ++request) {
    Worker& large = Home(kL, request);
    large.running.push_back(request);
    ++large.step.by_peer[home_[kS][request]];
  }
  for (Worker& large : side_[kL]) {
    if (large.idle()) continue;
    const int inside = static_cast<int>(large.running.size());
    large.step.predicted = Cost(kL, inside, std::round(inside / setup_.r));
    large.step.end = random_.Uniform() * large.step.predicted;
    large.step.start = large.step.end - large.step.predicted;
  }
}

double Simulation::Cost(Side side, int rows, double ids) const {
  return (side == kS ? setup_.small : setup_.large)(rows, static_cast<int64_t>(ids + 0.5));
}

// Moves ready rows into the step, in the order of their arrival, up to its limit; returns the
// number of their ids.
int64_t Simulation::TakeRows(Side side, Worker* worker) {
  std::vector<int>& ready = worker->ready;
  int64_t ids = worker->ready_ids;
  size_t rows = ready.size();
  const auto too_long = [&] {
    return rows > 1 &&
           Cost(side, static_cast<int>(rows), static_cast<double>(ids)) > setup_.max_step_ms;
  };
  while (setup_.max_step_ms > 0 && too_long()) ids -= NewIds(side, ready[--rows]);
  worker->running.assign(ready.begin(), ready.begin() + static_cast<ptrdiff_t>(rows));
  ready.erase(ready.begin(), ready.begin() + static_cast<ptrdiff_t>(rows));
  worker->ready_ids -= ids;
  return ids;
}

// On a shared device a change of the lease takes a handoff latency.
void Simulation::Launch(Side side, Worker* worker) {
  const int64_t ids = TakeRows(side, worker);
  const int rows = static_cast<int>(worker->running.size());
  Step& step = worker->step;
  step.predicted = Cost(side, rows, static_cast<double>(ids));
  const double duration =
      setup_.noise_cv > 0 ? step.predicted * random_.Jitter(setup_.noise_cv) : step.predicted;
  const double turn = setup_.shared_device && last_served_ != side ? setup_.hop_ms : 0;
  last_served_ = side;
  step.start = now_ + turn;
  step.end = step.start + duration;
  if (side == kL) small_first_until_ = worker->ready.empty() ? 0 : step.end + setup_.max_step_ms;
  std::fill(step.by_peer.begin(), step.by_peer.end(), 0);
  for (const int request : worker->running) ++step.by_peer[home_[Other(side)][request]];
  worker->deadline = kNever;
  ++steps_;
  rows_ += rows;
  worker->steps += 1;
  worker->rows += rows;
  worker->ids += static_cast<double>(ids);
  worker->busy += duration;
}

double Simulation::NextEvent() const {
  double next = arrivals_.empty() ? kNever : arrivals_.top().time;
  for (const auto& workers : side_) {
    for (const Worker& worker : workers) {
      if (!worker.idle()) {
        next = std::min(next, worker.step.end);
      } else if (!worker.ready.empty() && worker.deadline > now_ + kSameTime) {
        next = std::min(next, worker.deadline);
      }
    }
  }
  return next;
}

void Simulation::Advance() {
  now_ = NextEvent();
  while (!arrivals_.empty() && arrivals_.top().time <= now_ + kSameTime) {
    const Arrival arrival = arrivals_.top();
    arrivals_.pop();
    Receive(arrival);
  }
  for (const Side side : {kS, kL}) {
    for (int i = 0; i < static_cast<int>(side_[side].size()); ++i) {
      const Worker& worker = side_[side][i];
      if (!worker.idle() && worker.step.end <= now_ + kSameTime) Complete(side, i);
    }
  }
}

void Simulation::Receive(const Arrival& arrival) {
  if (arrival.request == kNoRequest) return;
  --Home(arrival.side, arrival.request).inbound;
  MakeReady(arrival.side, arrival.request);
}

void Simulation::Complete(Side side, int index) {
  Worker& worker = side_[side][index];
  std::swap(worker.last, worker.step);
  if (setup_.hop_ms > 0) arrivals_.push({now_ + setup_.hop_ms, side, kNoRequest});
  for (const int request : worker.running) {
    if (StaysAfter(side, request)) {
      MakeReady(side, request);
    } else {
      Hand(Other(side), request);
    }
  }
  worker.running.clear();
}

// Commits the token that the row produced; true when the request continues on the same side.
bool Simulation::StaysAfter(Side side, int request) {
  if (side == kS) {
    if (random_.Uniform() < setup_.r) {
      small_first_until_ = 0;
      return false;
    }
    ++unseen_[request];
    Commit(request, 1);
    return true;
  }
  unseen_[request] = 1;
  Commit(request, TokensOfVisit());
  return setup_.q < 1.0 && random_.Uniform() >= setup_.q;
}

void Simulation::Hand(Side side, int request) {
  if (setup_.hop_ms == 0 || setup_.shared_device) return MakeReady(side, request);
  ++Home(side, request).inbound;
  arrivals_.push({now_ + setup_.hop_ms, side, request});
}

void Simulation::MakeReady(Side side, int request) {
  Worker& worker = Home(side, request);
  if (worker.ready.empty()) worker.oldest_ready = now_;
  worker.ready.push_back(request);
  worker.ready_ids += NewIds(side, request);
}

// How many tokens a large row commits in the step that has ended.
int Simulation::TokensOfVisit() {
  if (setup_.committed.empty()) return 1;
  double left = random_.Uniform();
  int tokens = 1;
  for (const double share : setup_.committed) {
    left -= share;
    if (left < 0 || tokens == static_cast<int>(setup_.committed.size())) break;
    ++tokens;
  }
  return tokens;
}

// Tokens that are committed together follow each other without a gap.
void Simulation::Commit(int request, int tokens) {
  committed_ += tokens;
  for (int i = 0; i < tokens && gaps_.size() < kMaxGaps; ++i) {
    gaps_.push_back(static_cast<float>(now_ - last_commit_[request]));
    last_commit_[request] = now_;
  }
  last_commit_[request] = now_;
}

void Simulation::ResetCounts() {
  committed_ = 0;
  gaps_.clear();
  for (auto& workers : side_) {
    for (Worker& worker : workers) worker.steps = worker.rows = worker.ids = worker.busy = 0;
  }
}

SimulationResult Simulation::Report(double span) {
  Worker sums[2];
  for (const Side side : {kS, kL}) {
    for (const Worker& worker : side_[side]) {
      sums[side].steps += worker.steps;
      sums[side].rows += worker.rows;
      sums[side].ids += worker.ids;
      sums[side].busy += worker.busy;
    }
  }
  const auto mean_step = [](const Worker& sum) { return sum.busy / std::max(1.0, sum.steps); };
  SimulationResult result;
  result.committed_per_s = 1000.0 * static_cast<double>(committed_) / span;
  result.rows_per_s = 1000.0 * (sums[kS].rows + sums[kL].rows) / span;
  result.mean_batch_small = sums[kS].rows / std::max(1.0, sums[kS].steps);
  result.mean_batch_large = sums[kL].rows / std::max(1.0, sums[kL].steps);
  result.ids_per_large_row = sums[kL].ids / std::max(1.0, sums[kL].rows);
  result.step_small_ms = mean_step(sums[kS]);
  result.step_large_ms = mean_step(sums[kL]);
  result.busy_small = sums[kS].busy / span / setup_.small_workers;
  result.busy_large = sums[kL].busy / span / setup_.large_workers;
  result.gap_p50_ms = GapPercentile(0.5);
  result.gap_p99_ms = GapPercentile(0.99);
  return result;
}

double Simulation::GapPercentile(double share) {
  if (gaps_.empty()) return 0;
  const auto nth =
      gaps_.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(gaps_.size() - 1));
  std::nth_element(gaps_.begin(), nth, gaps_.end());
  return *nth;
}

}  // namespace tokenrouter
