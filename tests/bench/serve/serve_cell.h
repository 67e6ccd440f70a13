// One cell of serve_bench: a system at a number of clients, summed over its bursts. Threads: none.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/measure/percentile.h"
#include "tests/bench/serve/measured_curve.h"
#include "tests/bench/serve/serve_load.h"
#include "tests/support/cluster.h"

namespace tokenrouter {

// A served system: requests of one kind to one cluster.
struct ServedSystem {
  std::string name;
  std::string algorithm;  // As the rows call it.
  boost::json::object routing;
  Cluster* cluster = nullptr;
  bool one_mode = true;  // False: the scheduler chooses, and there is no bound on its rate.
};

class ServeCell {
 public:
  // The burst's tokens and times, and what the workers counted meanwhile.
  absl::Status Add(const ServedSystem& system, const BurstOptions& burst);

  // Of the last burst: tokens per second while every client was only decoding (serve_load.h; 0:
  // never), and from first send to last token.
  double last_decode_per_s() const { return last_decode_per_s_; }
  double last_tokens_per_s() const { return last_tokens_per_s_; }
  double decode_per_s() const { return decode_seconds_ > 0 ? decode_tokens_ / decode_seconds_ : 0; }
  double tokens_per_s() const { return tokens_ / seconds_; }

  // `curves`: small and large, measured between its bursts; the bound is the rate of the best
  // threshold on them at the share of large tokens while every client was only decoding, with no
  // overhead at all. REQUIRES: a burst was added.
  boost::json::object Row(const ServedSystem& system, int clients,
                          const MeasuredCurve curves[2]) const;

 private:
  int tokens_ = 0, large_tokens_ = 0;
  double seconds_ = 0;
  int decode_tokens_ = 0, decode_large_tokens_ = 0;
  double decode_seconds_ = 0;
  double last_decode_per_s_ = 0, last_tokens_per_s_ = 0;
  std::vector<double> ttft_, tpot_;
  double rows_[2] = {0, 0}, steps_[2] = {0, 0};
};

}  // namespace tokenrouter
