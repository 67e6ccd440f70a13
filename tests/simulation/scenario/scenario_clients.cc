// The part of DrawScenario that draws what clients ask for and how they behave.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/simulation/scenario/scenario.h"

namespace tokenrouter::simulation {
namespace {

void DrawBounds(RandomSource* random, wire::GenerationSpec* spec) {
  const auto bound = [random] {
    return random->Chance(0.2) ? static_cast<int32_t>(random->Between(1, 100)) : 0;
  };
  spec->set_max_defer_ms(bound());
  spec->set_ttft_slo_ms(bound());
  spec->set_token_slo_ms(bound());
  if (random->Chance(0.05)) spec->set_deadline_ms(random->Between(1, 3000));
}

void DrawSampling(RandomSource* random, wire::GenerationSpec* spec) {
  api::SamplingParameters& sampling = *spec->mutable_sampling();
  sampling.set_temperature(random->Chance(0.5) ? 0.0f : 1.0f);
  sampling.set_seed(random->Bits());
  if (random->Chance(0.2)) spec->set_choice(static_cast<uint32_t>(random->Between(1, 3)));
  if (random->Chance(0.3)) {
    sampling.set_frequency_penalty(0.1f * static_cast<float>(random->Between(-5, 10)));
    sampling.set_presence_penalty(0.1f * static_cast<float>(random->Between(-5, 10)));
    sampling.set_repetition_penalty(0.1f * static_cast<float>(random->Between(5, 20)));
  }
  if (random->Chance(0.2)) {
    for (int i = 0; i < 3; ++i) {
      (*sampling.mutable_logit_bias())[static_cast<TokenId>(random->Between(0, kUsableIds - 1))] =
          static_cast<float>(random->Between(-5, 5));
    }
  }
  if (random->Chance(0.3)) {
    spec->mutable_stop()->set_min_new_tokens(
        static_cast<int32_t>(random->Between(0, spec->stop().max_new_tokens())));
  }
}

void DrawRouting(RandomSource* random, ClientPlan* plan) {
  api::RoutingParameters& routing = *plan->spec.mutable_routing();
  static constexpr const char* kAlgorithms[] = {"never", "always", "random", "entropy",
                                                "speculative"};
  routing.set_algorithm(kAlgorithms[random->Between(0, 4)]);
  if (routing.algorithm() == "random") {
    (*routing.mutable_parameters())["p"] = 0.05 * static_cast<double>(random->Between(0, 12));
    if (random->Chance(0.5)) {
      (*routing.mutable_parameters())["window"] = static_cast<double>(random->Between(2, 12));
    }
  } else if (routing.algorithm() == "entropy") {
    (*routing.mutable_parameters())["threshold"] = 0.45;
  } else if (routing.algorithm() == "speculative") {
    const auto window = random->Between(1, 6);
    (*routing.mutable_parameters())["window"] = static_cast<double>(window);
    plan->credit_slack = static_cast<Position>(window + 1);
  }
}

void DrawBehaviour(RandomSource* random, const Scenario& scenario, ClientPlan* plan) {
  const absl::Duration starts_within = scenario.faults_within > absl::Seconds(1)
                                           ? scenario.faults_within
                                           : scenario.faults_within / 3;
  plan->starts_after = random->Between(absl::ZeroDuration(), starts_within);
  plan->reads_in = random->Chance(0.8)
                       ? random->Between(absl::ZeroDuration(), absl::Milliseconds(2))
                       : random->Between(absl::Milliseconds(10), absl::Milliseconds(300));
  if (random->Chance(0.15)) plan->cancels_after = static_cast<int>(random->Between(1, 20));
  if (plan->spec.string_stops() && random->Chance(0.5)) {
    plan->stops_after = static_cast<int>(random->Between(1, 20));
  }
  if (random->Chance(0.05)) {
    plan->pauses_after = static_cast<int>(random->Between(1, 20));
    // Beyond client_stall the request ends, which strict scenarios do not allow.
    plan->pause = absl::Seconds(random->Between(1, scenario.strict ? 40 : 90));
  }
  plan->resubmits = random->Chance(0.7);
}

ClientPlan DrawClient(RandomSource* random, const Scenario& scenario, const std::string& pair,
                      size_t number) {
  ClientPlan plan;
  const auto length = random->Between(1, 40);
  for (int i = 0; i < length; ++i) {
    plan.prompt.push_back(static_cast<TokenId>(random->Between(0, kPoison - 1)));
  }
  plan.poison = random->Chance(0.01);
  if (plan.poison) plan.prompt.front() = kPoison;
  wire::GenerationSpec& spec = plan.spec;
  spec.set_request_id(absl::StrCat("request", number));
  spec.set_pair(pair);
  spec.set_prompt_length(static_cast<int32_t>(length));
  spec.mutable_stop()->set_max_new_tokens(static_cast<int32_t>(random->Between(1, 60)));
  if (random->Chance(0.2)) spec.mutable_stop()->set_ignore_eos(true);
  DrawSampling(random, &spec);
  DrawRouting(random, &plan);
  if (random->Chance(0.2)) {
    spec.set_service_mode(random->Chance(0.5) ? api::SERVICE_MODE_ROUTED
                                              : api::SERVICE_MODE_LARGE_ALONE);
  }
  DrawBounds(random, &spec);
  spec.set_string_stops(random->Chance(0.3));
  plan.credit_window =
      spec.string_stops() ? scenario.options.string_stop_credit : scenario.options.credit;
  DrawBehaviour(random, scenario, &plan);
  return plan;
}

}  // namespace

void DrawClients(RandomSource* random, Scenario* scenario) {
  for (size_t i = 0; i < scenario->clients.size(); ++i) {
    ClientScenario& client = scenario->clients[i];
    client.gateway =
        static_cast<int>(random->Between(0, static_cast<int64_t>(scenario->gateways.size()) - 1));
    const std::string& pair = scenario->gateways[static_cast<size_t>(client.gateway)];
    client.plan = DrawClient(random, *scenario, pair, i);
  }
}

}  // namespace tokenrouter::simulation
