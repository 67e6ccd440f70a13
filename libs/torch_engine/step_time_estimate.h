// How long steps take, learned from those that ran: a moving average per class of new ids (1, 2, 3,
// 4, 6, 8, 12, ...). Between two known classes time is interpolated; below the smallest it is that
// one's, because a step reads all weights however few ids it has; above the largest it grows in
// proportion.
// Threads: one owner. Units: new ids of a step; zero duration means nothing was seen yet.
#pragma once

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace tokenrouter {

class StepTimeEstimate {
 public:
  // REQUIRES: new_ids > 0.
  void Add(int64_t new_ids, absl::Duration took);
  absl::Duration Predict(int64_t new_ids) const;

 private:
  static constexpr int kClasses = 48;       // Up to 2^24 ids.
  static constexpr double kNewShare = 0.2;  // Weight of the newest step of a class.
  static int ClassOf(int64_t new_ids);

  struct Average {
    double ids = 0.0;  // 0: nothing seen.
    double seconds = 0.0;
  };
  std::array<Average, kClasses> averages_;
};

}  // namespace tokenrouter
