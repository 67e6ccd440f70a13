#include "services/scheduler/pair_model/pair_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tokenrouter {

void PairModel::ObserveBegun(int32_t uncomputed_ids, int32_t most_tokens) {
  seen_.ObserveBegun(uncomputed_ids, most_tokens);
  mode_.Begin();
}

BatchingPolicy PairModel::Policy(int32_t live) const {
  const int32_t requests = std::max(1, live);
  const std::optional<PairPlan>& plan = plans_.plan();
  if (!plan) {
    if (!seen_.topology().shared_device) return {};
    return {
        .kind = BatchingPolicy::Kind::kModel,
        .m_large = std::max(1, static_cast<int>(std::ceil(options_.default_fraction * requests)))};
  }
  BatchingPolicy policy = plan->prediction.policy;
  // The best thresholds grow with the requests (batching model, section 5c).
  for (int* const threshold : {&policy.m_small, &policy.m_large}) {
    const double share = static_cast<double>(*threshold) / plan->inputs.requests;
    *threshold = std::clamp(static_cast<int>(std::lround(share * requests)), 1, requests);
  }
  return policy;
}

bool PairModel::PromptWorthRouting(int32_t prompt_ids, int32_t most_tokens) const {
  const std::optional<PairPlan>& plan = plans_.plan();
  if (!plan || prompt_ids <= 0 || !mode_.Sure(Uncertainty(plan->inputs.requests))) return true;
  const double mean = seen_.lengths().generated;
  const double tokens =
      mean > 0 ? std::min<double>(mean, most_tokens) : static_cast<double>(most_tokens);
  return RoutingSavesMs(mode_.rates().Correct(Prediction(), plan->inputs.requests),
                        CostOfPrompt(prompt_ids, tokens), MeanPrompt()) > 0;
}

PromptCost PairModel::CostOfPrompt(double ids, double tokens) const {
  const auto read_ms = [&](Role role) {
    return ids > 0 ? seen_.PredictMs(role, 1, static_cast<int64_t>(ids)) : 0.0;
  };
  return {.small_prefill_ms = read_ms(Role::kSmall),
          .large_prefill_ms = read_ms(Role::kLarge),
          .expected_tokens = tokens,
          .r = plans_.plan()->inputs.r,
          .shared_device = plans_.plan()->inputs.shared_device};
}

PromptCost PairModel::MeanPrompt() const {
  return CostOfPrompt(seen_.lengths().uncomputed, seen_.lengths().Answer());
}

ModePrediction PairModel::Prediction() const {
  return WithPrompts(plans_.plan()->prediction, MeanPrompt());
}

double PairModel::Uncertainty(int32_t live) const {
  if (seen_.routed().effective_trials() < options_.least_routed_trials) {
    return std::numeric_limits<double>::infinity();
  }
  return std::max(seen_.curve(Role::kSmall).Uncertainty(live, live),
                  seen_.curve(Role::kLarge).Uncertainty(live, live));
}

std::optional<PlanInputs> PairModel::Wanted(int32_t live, absl::Time now) {
  live_ = live;
  plans_.Recall(live);
  FollowMode(now);
  return plans_.Wanted(seen_, live, now);
}

void PairModel::Adopt(const std::optional<PairPlan>& plan, absl::Duration cost, absl::Time now) {
  plans_.Adopt(plan, cost, now);
  if (plan) FollowMode(now);
}

void PairModel::FollowMode(absl::Time now) {
  // A prediction for another load does not apply to this one; a new plan is on its way.
  const PlannedLoad load = plans_.Fits(live_)
                               ? PlannedLoad{plans_.plan()->inputs.requests, Prediction()}
                               : PlannedLoad{};
  mode_.Follow(live_, load, Uncertainty(live_), now);
}

}  // namespace tokenrouter
