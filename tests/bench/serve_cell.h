// One cell of serve_bench: a system at a number of clients, summed over its bursts. Threads: none.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/measured_curve.h"
#include "tests/bench/percentile.h"
#include "tests/bench/serve_load.h"
#include "tests/support/cluster.h"

namespace tokenrouter {

// What serves: requests of one kind to one cluster.
struct ServedSystem {
  std::string name;
  std::string algorithm;  // As the rows call it.
  boost::json::object routing;
  Cluster* cluster = nullptr;
};

class ServeCell {
 public:
  // The burst's tokens and times, and what the workers counted meanwhile.
  absl::Status Add(const ServedSystem& system, const BurstOptions& burst);

  // Of the last burst: tokens per second while everybody decoded, and from first send to last
  // token.
  double last_decode_per_s() const { return decode_.back(); }
  double last_tokens_per_s() const { return end_to_end_.back(); }
  double decode_per_s() const { return Percentile(decode_, 0.5); }
  double tokens_per_s() const { return tokens_ / seconds_; }

  // `curves`: small and large, measured in this run; the bound is the rate of the best threshold on
  // them at this cell's share of large tokens, with no overhead at all, and the same with the
  // prompts that the large side reads while answers are written. REQUIRES: a burst was added.
  boost::json::object Row(const ServedSystem& system, int clients,
                          const MeasuredCurve curves[2]) const;

 private:
  int tokens_ = 0, large_tokens_ = 0;
  double seconds_ = 0;
  std::vector<double> decode_, end_to_end_, ttft_, tpot_;
  double rows_[2] = {0, 0}, steps_[2] = {0, 0};
  double catch_up_ids_ = 0;
};

}  // namespace tokenrouter
