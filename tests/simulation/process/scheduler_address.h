// SchedulerAddress is the name under which peers dial the scheduler: like a name in a cluster it
// leads to one process, to either of two while one takes over from the other, or to none.
#pragma once

#include "tests/simulation/process/random_source.h"

namespace tokenrouter::simulation {

class SimulatedScheduler;

class SchedulerAddress {
 public:
  // `random` decides where a dial leads while two processes share the name.
  SchedulerAddress(RandomSource* random, SimulatedScheduler* current)
      : random_(random), current_(current) {}

  SimulatedScheduler* current() const { return current_; }
  SimulatedScheduler* former() const { return former_; }
  // The name leads to `next` from now on, and for a share of the dials still to the present one.
  void TakeOver(SimulatedScheduler* next, double share_of_former) {
    former_ = current_;
    current_ = next;
    share_of_former_ = share_of_former;
  }
  void ForgetFormer() { former_ = nullptr; }

  SimulatedScheduler* Dial() const {
    const bool leads_back = former_ != nullptr && random_->Chance(share_of_former_);
    return leads_back ? former_ : current_;
  }

 private:
  RandomSource* const random_;
  SimulatedScheduler* current_;
  SimulatedScheduler* former_ = nullptr;
  double share_of_former_ = 0;
};

}  // namespace tokenrouter::simulation
