#include "libs/batching_model/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/batching_model/delay_balance.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kWarmUp = 0.1;       // Share of the time that is not counted.
constexpr size_t kMaxGaps = 1 << 20;  // Gaps kept for the percentiles.
constexpr double kSameTime = 1e-9;    // Milliseconds; events this close happen together.

enum Side { kS = 0, kL = 1 };

// SplitMix64: small, fast, and the same on every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  double Uniform() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  }
  double Normal() {
    return std::sqrt(-2.0 * std::log(Uniform())) * std::cos(6.283185307179586 * Uniform());
  }

 private:
  uint64_t state_;
};

struct Device {
  std::vector<int> ready;
  std::vector<int> running;
  double start = 0;
  double end = kNever;       // Of the running step; kNever: idle.
  double predicted = 0;      // Duration.
  double oldest_ready = 0;   // When the queue became non-empty.
  double deadline = kNever;  // A wait in force ends here at the latest.
  double steps = 0, rows = 0, ids = 0, busy = 0;
  bool idle() const { return end == kNever; }
};

// A row that becomes ready at a later time.
struct Arrival {
  double time;
  Side side;
  int request;
  bool operator>(const Arrival& other) const { return time > other.time; }
};

class Simulation {
 public:
  Simulation(const SimulationSetup& setup, const BatchingPolicy& policy)
      : setup_(setup),
        policy_(policy),
        random_(setup.seed),
        unseen_(setup.requests, 1),
        last_commit_(setup.requests, 0.0) {
    const int inside = setup.desynchronised ? setup.requests / 2 : 0;
    for (int i = inside; i < setup.requests; ++i) side_[kS].ready.push_back(i);
    if (inside > 0) StartInside(inside);
  }

  SimulationResult Run() {
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

 private:
  // Share of the run that is over, by whichever of its limits comes first.
  double Progress() const {
    double progress = now_ / setup_.duration_ms;
    if (setup_.max_steps > 0) progress = std::max(progress, Share(steps_, setup_.max_steps));
    if (setup_.max_rows > 0) progress = std::max(progress, Share(rows_, setup_.max_rows));
    return progress;
  }
  static double Share(int64_t done, int64_t limit) {
    return static_cast<double>(done) / static_cast<double>(limit);
  }

  // The first `rows` requests are inside a large step at a random phase.
  void StartInside(int rows) {
    const double ids = std::round(rows / setup_.r);
    Device& large = side_[kL];
    for (int i = 0; i < rows; ++i) large.running.push_back(i);
    large.predicted = Cost(kL, rows, ids);
    large.end = random_.Uniform() * large.predicted;
    large.start = large.end - large.predicted;
  }

  int Ready(Side side) const { return static_cast<int>(side_[side].ready.size()); }
  int64_t ReadyIds(Side side) const {
    if (side == kS) return Ready(kS);
    int64_t ids = 0;
    for (const int request : side_[kL].ready) ids += unseen_[request];
    return ids;
  }
  double Cost(Side side, int rows, double ids) const {
    return (side == kS ? setup_.small : setup_.large)(rows, static_cast<int64_t>(ids + 0.5));
  }
  double Remaining(Side side) const {
    const Device& device = side_[side];
    return MeanResidual(device.predicted, now_ - device.start, setup_.noise_cv);
  }

  void Launch(Side side) {
    Device& device = side_[side];
    const int64_t ids = ReadyIds(side);
    device.running = std::move(device.ready);
    device.ready.clear();
    const int rows = static_cast<int>(device.running.size());
    device.predicted = Cost(side, rows, static_cast<double>(ids));
    double duration = device.predicted;
    if (setup_.noise_cv > 0) {
      const double sigma = std::sqrt(std::log1p(setup_.noise_cv * setup_.noise_cv));
      duration *= std::exp(sigma * random_.Normal() - sigma * sigma / 2);
    }
    device.start = now_;
    device.end = now_ + duration;
    device.deadline = kNever;
    ++steps_;
    rows_ += rows;
    device.steps += 1;
    device.rows += rows;
    device.ids += static_cast<double>(ids);
    device.busy += duration;
  }

  // One device: exactly one step at a time.
  void DecideShared() {
    if (!side_[kS].idle() || !side_[kL].idle()) return;
    const int small = Ready(kS), large = Ready(kL);
    if (small + large == 0) return;
    bool serve_large = small == 0;
    if (small > 0 && large > 0) {
      switch (policy_.kind) {
        case BatchingPolicy::Kind::kGreedy:
          serve_large = true;
          break;
        case BatchingPolicy::Kind::kStatic:
        case BatchingPolicy::Kind::kModel:
          serve_large = large >= policy_.m_large;
          break;
        case BatchingPolicy::Kind::kFixedWait:
          serve_large = now_ - side_[kL].oldest_ready >= policy_.wait_large_ms - kSameTime;
          break;
        case BatchingPolicy::Kind::kLongestQueue:
          serve_large = large >= small;
          break;
      }
    }
    Launch(serve_large ? kL : kS);
  }

  void DecideTwo() {
    bool launch[2];
    for (const Side side : {kS, kL}) {
      launch[side] = side_[side].idle() && Ready(side) > 0;
      if (launch[side] && policy_.kind != BatchingPolicy::Kind::kModel)
        launch[side] = !WaitsByRule(side);
    }
    if (policy_.kind == BatchingPolicy::Kind::kModel) DecideByModel(launch);
    const bool stuck = side_[kS].idle() && side_[kL].idle() && !launch[kS] && !launch[kL] &&
                       arrivals_.empty() && side_[kS].deadline == kNever &&
                       side_[kL].deadline == kNever;
    if (stuck) launch[Ready(kS) > 0 ? kS : kL] = true;
    for (const Side side : {kS, kL}) {
      if (launch[side]) Launch(side);
    }
  }

  // Static thresholds and fixed waits.
  bool WaitsByRule(Side side) {
    Device& device = side_[side];
    if (policy_.kind == BatchingPolicy::Kind::kStatic) {
      return Ready(side) < (side == kS ? policy_.m_small : policy_.m_large);
    }
    if (policy_.kind != BatchingPolicy::Kind::kFixedWait) return false;
    device.deadline =
        device.oldest_ready + (side == kS ? policy_.wait_small_ms : policy_.wait_large_ms);
    return now_ < device.deadline - kSameTime;
  }

  // decide() of section 5a.
  void DecideByModel(bool launch[2]) {
    Device& small = side_[kS];
    Device& large = side_[kL];
    if (launch[kS] && !large.idle()) {
      launch[kS] =
          !WaitsFor(kS, setup_.q * static_cast<double>(large.running.size()), Remaining(kL));
    }
    if (!launch[kL]) return;
    if (!small.idle()) {
      launch[kL] =
          !WaitsFor(kL, setup_.r * static_cast<double>(small.running.size()), Remaining(kS));
    } else if (launch[kS]) {  // Both idle: is holding L for the S step about to start better?
      const double small_time = Cost(kS, Ready(kS), Ready(kS));
      const double large_time = Cost(kL, Ready(kL), static_cast<double>(ReadyIds(kL)));
      launch[kL] = small_time >= WaitThreshold(kL, setup_.r * Ready(kS));
      if (launch[kL] && large_time < small_time &&
          large_time < WaitThreshold(kS, setup_.q * Ready(kL))) {
        launch[kS] = false;
      }
    }
  }

  // tau* of the rows ready on `side` against so many expected arrivals.
  double WaitThreshold(Side side, double arrivals) const {
    const int k = Ready(side), n = std::max(1, static_cast<int>(arrivals + 0.5));
    const double own = static_cast<double>(ReadyIds(side));
    const double coming = side == kS ? n : n / setup_.r;
    return DelayBalanceThreshold({.ready = Cost(side, k, own),
                                  .arrivals = Cost(side, n, coming),
                                  .together = Cost(side, k + n, own + coming)},
                                 k, arrivals, policy_.beta);
  }

  // True while `side` should wait for arrivals that come after `remaining`. The first wait arms a
  // timer, which bounds it when the other side's step overruns.
  bool WaitsFor(Side side, double arrivals, double remaining) {
    Device& device = side_[side];
    const double tau = WaitThreshold(side, arrivals);
    if (remaining >= tau) return false;
    if (device.deadline == kNever) {
      const int peer_rows = static_cast<int>(side_[kS].running.size());
      device.deadline = now_ + (side == kL ? std::max(tau, Cost(kS, peer_rows, peer_rows)) : tau);
    }
    return now_ < device.deadline - kSameTime;
  }

  void Advance() {
    double next = std::min(side_[kS].end, side_[kL].end);
    if (!arrivals_.empty()) next = std::min(next, arrivals_.top().time);
    for (const Side side : {kS, kL}) {
      if (side_[side].idle() && Ready(side) > 0 && side_[side].deadline > now_ + kSameTime) {
        next = std::min(next, side_[side].deadline);
      }
    }
    now_ = next;
    while (!arrivals_.empty() && arrivals_.top().time <= now_ + kSameTime) {
      MakeReady(arrivals_.top().side, arrivals_.top().request);
      arrivals_.pop();
    }
    if (side_[kS].end <= now_ + kSameTime) CompleteSmall();
    if (side_[kL].end <= now_ + kSameTime) CompleteLarge();
  }

  void CompleteSmall() {
    Device& device = side_[kS];
    device.end = kNever;
    side_[kL].deadline = kNever;  // What it waited for has come.
    for (const int request : device.running) {
      if (random_.Uniform() < setup_.r) {
        Hand(kL, request);
      } else {
        Commit(request);
        ++unseen_[request];
        MakeReady(kS, request);
      }
    }
    device.running.clear();
  }

  void CompleteLarge() {
    Device& device = side_[kL];
    device.end = kNever;
    side_[kS].deadline = kNever;
    for (const int request : device.running) {
      Commit(request);
      unseen_[request] = 1;
      if (setup_.q >= 1.0 || random_.Uniform() < setup_.q) {
        Hand(kS, request);
      } else {
        MakeReady(kL, request);
      }
    }
    device.running.clear();
  }

  void Hand(Side side, int request) {
    if (setup_.hop_ms > 0) {
      arrivals_.push({now_ + setup_.hop_ms, side, request});
    } else {
      MakeReady(side, request);
    }
  }

  void MakeReady(Side side, int request) {
    if (side_[side].ready.empty()) side_[side].oldest_ready = now_;
    side_[side].ready.push_back(request);
  }

  void Commit(int request) {
    ++committed_;
    if (gaps_.size() < kMaxGaps) gaps_.push_back(static_cast<float>(now_ - last_commit_[request]));
    last_commit_[request] = now_;
  }

  void ResetCounts() {
    committed_ = 0;
    gaps_.clear();
    for (Device& device : side_) device.steps = device.rows = device.ids = device.busy = 0;
  }

  SimulationResult Report(double span) {
    const Device& small = side_[kS];
    const Device& large = side_[kL];
    SimulationResult result;
    result.committed_per_s = 1000.0 * static_cast<double>(committed_) / span;
    result.rows_per_s = 1000.0 * (small.rows + large.rows) / span;
    result.mean_batch_small = small.rows / std::max(1.0, small.steps);
    result.mean_batch_large = large.rows / std::max(1.0, large.steps);
    result.ids_per_large_row = large.ids / std::max(1.0, large.rows);
    result.busy_small = small.busy / span;
    result.busy_large = large.busy / span;
    result.gap_p50_ms = GapPercentile(0.5);
    result.gap_p99_ms = GapPercentile(0.99);
    return result;
  }

  double GapPercentile(double share) {
    if (gaps_.empty()) return 0;
    const auto nth =
        gaps_.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(gaps_.size() - 1));
    std::nth_element(gaps_.begin(), nth, gaps_.end());
    return *nth;
  }

  const SimulationSetup& setup_;
  const BatchingPolicy& policy_;
  Random random_;
  double now_ = 0;
  Device side_[2];
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::vector<int64_t> unseen_;  // Committed ids that the large model has not read, by request.
  std::vector<double> last_commit_;
  int64_t steps_ = 0, rows_ = 0;  // Since the start of the run.
  int64_t committed_ = 0;
  std::vector<float> gaps_;
};

absl::Status InRange(const char* field, bool inside, double value, const char* allowed) {
  if (inside) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; allowed: ", allowed));
}

}  // namespace

absl::Status CheckSetup(const SimulationSetup& setup) {
  TR_RETURN_IF_ERROR(InRange("requests", setup.requests >= 1 && setup.requests <= 1 << 16,
                             setup.requests, "1 to 65536"));
  TR_RETURN_IF_ERROR(InRange("r", setup.r > 0 && setup.r < 1, setup.r, "(0, 1)"));
  TR_RETURN_IF_ERROR(InRange("q", setup.q > 0 && setup.q <= 1, setup.q, "(0, 1]"));
  TR_RETURN_IF_ERROR(
      InRange("noise_cv", setup.noise_cv >= 0 && setup.noise_cv <= 1, setup.noise_cv, "[0, 1]"));
  TR_RETURN_IF_ERROR(
      InRange("hop_ms", setup.hop_ms >= 0 && setup.hop_ms <= 1000, setup.hop_ms, "[0, 1000]"));
  return InRange("duration_ms", setup.duration_ms > 0, setup.duration_ms, "> 0");
}

absl::StatusOr<SimulationResult> Simulate(const SimulationSetup& setup,
                                          const BatchingPolicy& policy) {
  TR_RETURN_IF_ERROR(CheckSetup(setup));
  const bool idle_waits = !setup.shared_device && policy.kind == BatchingPolicy::Kind::kStatic;
  TR_RETURN_IF_ERROR(InRange(
      "m_small + m_large", !idle_waits || policy.m_small + policy.m_large <= setup.requests + 1,
      policy.m_small + policy.m_large, "at most requests + 1, or both queues can wait for ever"));
  return Simulation(setup, policy).Run();
}

double AloneRate(const StepCost& cost, int requests) {
  return 1000.0 * requests / cost(requests, requests);
}

}  // namespace tokenrouter
