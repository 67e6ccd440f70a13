#include "tests/bench/serve/serve_cell.h"

#include <algorithm>

#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

struct Counters {
  double rows[2], steps[2];
};

Counters ReadCounters(Cluster* cluster) {
  Counters counters{};
  for (int role = 0; role < 2; ++role) {
    const Member& member = role == 0 ? cluster->small(0) : cluster->large(0);
    counters.rows[role] = Cluster::Metric(member, "tokenrouter_worker_rows_per_step_sum");
    counters.steps[role] = Cluster::Metric(member, "tokenrouter_worker_rows_per_step_count");
  }
  return counters;
}

double Bound(const MeasuredCurve curves[2], double large_share, int clients) {
  if (large_share <= 0) return 1000.0 * clients / curves[0].Milliseconds(clients, clients);
  if (large_share >= 1) return 1000.0 * clients / curves[1].Milliseconds(clients, clients);
  return BestSharedRate(curves[0], curves[1], clients, large_share);
}

}  // namespace

absl::Status ServeCell::Add(const ServedSystem& system, const BurstOptions& options) {
  const Counters before = ReadCounters(system.cluster);
  BurstOptions own = options;
  own.http_port = system.cluster->gateway().port;
  own.routing = system.routing;
  TR_ASSIGN_OR_RETURN(const Burst burst, RunBurst(own));
  const Counters after = ReadCounters(system.cluster);
  tokens_ += burst.tokens;
  large_tokens_ += burst.large_tokens;
  seconds_ += burst.seconds;
  decode_tokens_ += burst.decode_tokens;
  decode_large_tokens_ += burst.decode_large_tokens;
  decode_seconds_ += burst.decode_seconds;
  last_decode_per_s_ = burst.decode_seconds > 0 ? burst.decode_tokens / burst.decode_seconds : 0;
  last_tokens_per_s_ = burst.tokens / burst.seconds;
  ttft_.insert(ttft_.end(), burst.ttft_ms.begin(), burst.ttft_ms.end());
  tpot_.insert(tpot_.end(), burst.tpot_ms.begin(), burst.tpot_ms.end());
  for (int role = 0; role < 2; ++role) {
    rows_[role] += after.rows[role] - before.rows[role];
    steps_[role] += after.steps[role] - before.steps[role];
  }
  return absl::OkStatus();
}

boost::json::object ServeCell::Row(const ServedSystem& system, int clients,
                                   const MeasuredCurve curves[2]) const {
  const double share = static_cast<double>(decode_large_tokens_) / std::max(1, decode_tokens_);
  boost::json::object row = {{"bench", "serve"},
                             {"system", system.name},
                             {"clients", clients},
                             {"algorithm", system.algorithm},
                             {"tokens_per_s", tokens_per_s()},
                             {"decode_tokens_per_s", decode_per_s()},
                             {"ttft_ms_p50", Percentile(ttft_, 0.5)},
                             {"ttft_ms_p99", Percentile(ttft_, 0.99)},
                             {"tpot_ms_p50", Percentile(tpot_, 0.5)},
                             {"tpot_ms_p99", Percentile(tpot_, 0.99)},
                             {"large_share", static_cast<double>(large_tokens_) / tokens_},
                             {"decode_large_share", share},
                             {"decode_seconds", decode_seconds_},
                             {"mean_batch_small", steps_[0] > 0 ? rows_[0] / steps_[0] : 0},
                             {"mean_batch_large", steps_[1] > 0 ? rows_[1] / steps_[1] : 0}};
  if (!system.one_mode) return row;
  const double bound = Bound(curves, share, clients);
  row["bound"] = bound;
  row["share_of_bound"] = decode_per_s() / bound;
  return row;
}

}  // namespace tokenrouter
