#include "tests/bench/serve_cell.h"

#include <algorithm>

#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

struct Counters {
  double rows[2], steps[2], catch_up;
};

Counters ReadCounters(Cluster* cluster) {
  Counters counters{};
  for (int role = 0; role < 2; ++role) {
    const Member& member = role == 0 ? cluster->small(0) : cluster->large(0);
    counters.rows[role] = Cluster::Metric(member, "tokenrouter_worker_rows_per_step_sum");
    counters.steps[role] = Cluster::Metric(member, "tokenrouter_worker_rows_per_step_count");
  }
  counters.catch_up = Cluster::Metric(cluster->large(0), "tokenrouter_worker_catch_up_ids_total");
  return counters;
}

double Bound(const MeasuredCurve curves[2], double large_share, int clients) {
  if (large_share <= 0) return 1000.0 * clients / curves[0].Milliseconds(clients, clients);
  if (large_share >= 1) return 1000.0 * clients / curves[1].Milliseconds(clients, clients);
  return BestSharedRate(curves[0], curves[1], clients, large_share);
}

// The same with so many ids of prompts per token, which the large model reads in between.
double WithPrompts(double bound, const MeasuredCurve& large, double ids_per_token) {
  constexpr int kLong = 128;
  const double per_id = (large.Milliseconds(1, kLong) - large.Milliseconds(1, 1)) / (kLong - 1);
  return 1 / (1 / bound + ids_per_token * per_id / 1000);
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
  decode_.push_back(burst.decode_tokens_per_s);
  end_to_end_.push_back(burst.tokens / burst.seconds);
  ttft_.insert(ttft_.end(), burst.ttft_ms.begin(), burst.ttft_ms.end());
  tpot_.insert(tpot_.end(), burst.tpot_ms.begin(), burst.tpot_ms.end());
  for (int role = 0; role < 2; ++role) {
    rows_[role] += after.rows[role] - before.rows[role];
    steps_[role] += after.steps[role] - before.steps[role];
  }
  catch_up_ids_ += after.catch_up - before.catch_up;
  return absl::OkStatus();
}

boost::json::object ServeCell::Row(const ServedSystem& system, int clients,
                                   const MeasuredCurve curves[2]) const {
  const double share = static_cast<double>(large_tokens_) / tokens_;
  const double bound = Bound(curves, share, clients);
  // Every token is read once by the large model as well; what it read beyond that were prompts. If
  // it writes all of the answer, it has read them before the first token.
  const double prompt_ids =
      share < 1 ? std::max(0.0, catch_up_ids_ + large_tokens_ - tokens_) / tokens_ : 0;
  const double with_prompts = WithPrompts(bound, curves[1], prompt_ids);
  return {{"bench", "serve"},
          {"system", system.name},
          {"clients", clients},
          {"algorithm", system.algorithm},
          {"tokens_per_s", tokens_per_s()},
          {"decode_tokens_per_s", decode_per_s()},
          {"ttft_ms_p50", Percentile(ttft_, 0.5)},
          {"ttft_ms_p99", Percentile(ttft_, 0.99)},
          {"tpot_ms_p50", Percentile(tpot_, 0.5)},
          {"tpot_ms_p99", Percentile(tpot_, 0.99)},
          {"large_share", share},
          {"mean_batch_small", steps_[0] > 0 ? rows_[0] / steps_[0] : 0},
          {"mean_batch_large", steps_[1] > 0 ? rows_[1] / steps_[1] : 0},
          {"catch_up_ids", catch_up_ids_},
          {"bound", bound},
          {"share_of_bound", decode_per_s() / bound},
          {"bound_with_prompts", with_prompts},
          {"share_of_bound_with_prompts", decode_per_s() / with_prompts}};
}

}  // namespace tokenrouter
