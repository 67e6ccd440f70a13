// Relative value iteration behind SolveTwoDevices, and the simulation that checks it. States are
// those at which a decision can fall: one side X just became idle with k ready rows while the other
// runs b rows for tau more grid steps, or both are idle. Threads: not thread-safe. REQUIRES: a
// problem that SolveTwoDevices has checked; it must outlive this.
#pragma once

#include <cstdint>
#include <vector>

#include "libs/batching_offline/exact_solver.h"

namespace tokenrouter {

class ExactIteration {
 public:
  struct Pace {
    double values;  // Share of each sweep's change that is taken over.
    double rate;    // Share of the measured error of the rate that is corrected per sweep.
  };
  ExactIteration(const ExactProblem& problem, const Pace& pace);

  // False when it has not settled within the sweeps allowed.
  bool Run();
  ExactSolution Solution() const;
  // Rows per second of the policy found, by sampling.
  double SimulateRows() const;

 private:
  // Relative value (rows) and relative time of a state; the ratio of their drifts corrects the
  // rate.
  struct Value {
    double rows = 0;
    double time = 0;
    void Add(double weight, const Value& other) {
      rows += weight * other.rows;
      time += weight * other.time;
    }
  };
  struct Best {
    Value value;
    int action = 0;
  };

  size_t At(int side, int ready, int running, int left) const {
    return ((static_cast<size_t>(side) * (n_ + 1) + ready) * (n_ + 1) + running) * (longest_ + 1) +
           left;
  }
  Value After(int time, double rows) const {
    return {rows - rate_ * time, static_cast<double>(time)};
  }
  void Sweep();
  void SweepSide(int side, int running, int ready);
  Value Launch(int side, int ready, int running, int left) const;
  Best DecideBothIdle(int small_ready) const;
  Value ValueOfBothIdle(int small_ready, int action) const;
  int FixedAction(int small_ready) const;
  void Blend(Value* held, const Value& next, const Value& reference) const;

  const ExactProblem& problem_;
  const Pace pace_;
  const int n_;
  int longest_ = 1;                              // Grid steps.
  std::vector<int> duration_[2];                 // By rows.
  std::vector<std::vector<double>> leaving_[2];  // By rows: probabilities of how many leave.
  double rate_ = 0;                              // Rows per grid step.
  double fastest_ = 0;                           // The rate of both sides without waiting.
  int sweeps_ = 0;
  std::vector<Value> busy_, next_busy_;  // One side idle, indexed by At.
  std::vector<uint8_t> launches_;
  std::vector<Value> idle_, next_idle_;  // Both idle, by rows ready on the small side.
  std::vector<int> idle_action_;
};

}  // namespace tokenrouter
