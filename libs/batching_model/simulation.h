// One run of the simulator (simulator.h): workers, steps and rows are in simulation.cc, launch
// decisions in simulation_policy.cc. A worker sees the other side one handoff latency late; rows
// arrive one handoff latency after their step, so that the remaining time of a step as seen is also
// the time until its rows arrive. Ownership: refers to the setup and the policy it was made from.
// Threads: none.
#pragma once

#include <limits>
#include <queue>
#include <vector>

#include "libs/batching_model/simulation_random.h"
#include "libs/batching_model/simulator.h"

namespace tokenrouter {

class Simulation {
 public:
  // REQUIRES: CheckSetup(setup) is OK; both outlive this.
  Simulation(const SimulationSetup& setup, const BatchingPolicy& policy);

  SimulationResult Run();

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr double kSameTime = 1e-9;  // Milliseconds; events this close happen together.

  enum Side { kS = 0, kL = 1 };
  static Side Other(Side side) { return side == kS ? kL : kS; }

  struct Step {
    double start = kNever;
    double end = kNever;
    double predicted = 0;      // Duration.
    std::vector<int> by_peer;  // Its rows by the worker of the other side that they belong to.
  };

  struct Worker {
    std::vector<int> ready;
    int64_t ready_ids = 0;
    std::vector<int> running;  // Empty: idle.
    Step step;                 // The running step.
    Step last;                 // The one before: a peer may not know yet that it ended.
    int requests = 0;          // Assigned to this worker, on whichever side they are now.
    int inbound = 0;           // Rows on their way here.
    double oldest_ready = 0;   // When the queue became non-empty.
    double deadline = kNever;  // A wait in force ends here at the latest.
    double steps = 0, rows = 0, ids = 0, busy = 0;
    bool idle() const { return running.empty(); }
    int rows_ready() const { return static_cast<int>(ready.size()); }
  };

  // A row that becomes ready at a later time; without a request, the update that a step has ended.
  struct Arrival {
    double time;
    Side side;
    int request;
    bool operator>(const Arrival& other) const { return time > other.time; }
  };

  // Rows that a step of the other side is expected to bring to a worker.
  struct Expected {
    double remaining = 0;
    double arrivals = 0;
    double latest = kNever;  // When to give up on them.
  };

  // simulation.cc
  double Progress() const;
  void StartInside(int rows);
  double Cost(Side side, int rows, double ids) const;
  int64_t NewIds(Side side, int request) const { return side == kS ? 1 : unseen_[request]; }
  Worker& Home(Side side, int request) { return side_[side][home_[side][request]]; }
  int64_t TakeRows(Side side, Worker* worker);
  void Launch(Side side, Worker* worker);
  void Advance();
  double NextEvent() const;
  void Complete(Side side, int worker);
  bool StaysAfter(Side side, int request);
  void Hand(Side side, int request);
  void Receive(const Arrival& arrival);
  void MakeReady(Side side, int request);
  int TokensOfVisit();
  void Commit(int request, int tokens);
  void ResetCounts();
  SimulationResult Report(double span);
  double GapPercentile(double share);

  // simulation_policy.cc
  void DecideShared();
  bool ServesLarge(const Worker& small, const Worker& large) const;
  void DecideTwo();
  bool Waits(Side side, int index);
  bool WaitsByRule(Side side, Worker* worker, bool peer_busy) const;
  const Step* Visible(const Worker& worker) const;
  std::vector<Expected> Running(Side side, int index) const;
  void AddStarting(int large, std::vector<Expected>* expected) const;
  bool Stuck() const;

  const SimulationSetup& setup_;
  const BatchingPolicy& policy_;
  SimulationRandom random_;
  double now_ = 0;
  std::vector<Worker> side_[2];
  std::vector<int> home_[2];       // Worker by request.
  std::vector<char> launches_[2];  // Whether a launch is decided now, by worker.
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::vector<int64_t> unseen_;  // Committed ids uncomputed on the large side, by request.
  std::vector<double> last_commit_;
  int last_served_ = kS;          // Shared device: whose step ran last.
  double small_first_until_ = 0;  // Shared device: a large step left rows behind.
  int64_t steps_ = 0, rows_ = 0;  // Since the start of the run.
  int64_t committed_ = 0;
  std::vector<float> gaps_;
};

}  // namespace tokenrouter
