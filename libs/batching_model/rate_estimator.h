// Learns the probability of a yes or no event that happens in batches: r (a small row is routed), q
// (a large row goes back), the acceptance rate of tentative tokens. Old trials fade, so the
// estimate has an effective number of trials and honest bounds. RetuneGate decides when such an
// estimate has moved enough to plan again. Threads: not thread-safe. Units: probabilities in [0,
// 1].
#pragma once

#include <cstdint>

namespace tokenrouter {

class RateEstimator {
 public:
  // `memory` trials are remembered at most; until some were seen the mean is `prior`, which counts
  // as one trial. REQUIRES: 0 <= prior <= 1, memory >= 1.
  explicit RateEstimator(double prior, double memory = 2000);

  // REQUIRES: 0 <= yes <= trials.
  void Observe(int64_t trials, int64_t yes);

  double mean() const;
  double effective_trials() const { return trials_; }
  // Wilson's 95 % interval: [0, 1] before any trial, and never of no width at 0 or 1.
  double Lower() const;
  double Upper() const;

 private:
  double Bound(double sign) const;

  double prior_;
  double keep_;  // Per trial.
  double trials_ = 0;
  double yes_ = 0;
};

// Remembers the estimate that the present plan was made with. Moved: |now - then| > max(25 % of
// then, half the interval of now).
class RetuneGate {
 public:
  bool Moved(const RateEstimator& rate) const;
  void Planned(const RateEstimator& rate);

 private:
  bool planned_ = false;
  double reference_ = 0;
};

}  // namespace tokenrouter
