// ServiceYield compares what a pair commits with what its plan predicted, apart for each service
// mode: prompts, changes of turns and whatever else a plan leaves out cost the one mode more than
// the other. Only the mode in force can be measured; the memory of the other fades towards 1, so
// that a mode that once looked bad is tried again.
// Threads: lives on the scheduler's loop. Cost: O(1) per call.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "libs/batching_model/mode_controller.h"

namespace tokenrouter {

class ServiceYield {
 public:
  void Commit(int64_t tokens) { committed_ += tokens; }
  // At every tick: the mode in force, how many requests are live, and the predicted tokens/s of one
  // of them; 0 while there is no prediction for this load. Time without a request does not count.
  void Follow(ServiceMode mode, int32_t live, double predicted_per_request, absl::Time now);

  // Measured over predicted; 1 until it was measured.
  double Of(ServiceMode mode) const { return yields_[static_cast<int>(mode)]; }
  // The prediction as experience has it.
  ModePrediction Correct(ModePrediction prediction) const;

 private:
  void Begin(absl::Time from);
  void Finish(absl::Time now);

  double yields_[2] = {1, 1};
  ServiceMode mode_ = ServiceMode::kRouted;
  absl::Time begin_ = absl::InfinitePast();  // Of the window; what is committed before is ignored.
  absl::Time seen_ = absl::InfinitePast();   // The last call.
  int32_t live_ = 0;                         // Then.
  int64_t committed_ = 0;                    // In this window.
  double expected_ = 0;                      // Tokens that the prediction gave it so far.
  absl::Duration served_;                    // Of it, with requests.
};

}  // namespace tokenrouter
