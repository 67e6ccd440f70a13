#include "tests/simulation/reference_run.h"

#include <algorithm>

#include "libs/routing/algorithm_registry.h"
#include "libs/routing/wire_types.h"
#include "libs/status/check.h"
#include "libs/tokens/stop_rules.h"

namespace tokenrouter::simulation {
namespace {

class OneModel {
 public:
  OneModel(const HashModelOptions& options, const v1::GenerationSpec& spec) : model_(options) {
    context_.parameters = *FromWire(spec.sampling(), spec.choice());
    context_.stop_ids = options.eos_ids;
    context_.mask_stop_ids_before =
        spec.prompt_length() + std::max(0, spec.stop().min_new_tokens() - 1);
  }
  void Count(TokenId id) { ++context_.generated_counts[id]; }
  Choice Next(const HashHistory& history) {
    auto choice = model_.Next(history.At(history.length()), history.length(), context_,
                              context_.generated_counts, {}, &scratch_);
    TR_CHECK(choice.ok()) << choice.status();
    return *choice;
  }

 private:
  const HashModel model_;
  SamplingContext context_;
  SamplerScratch scratch_;
};

}  // namespace

ReferenceAnswer RunReference(const v1::GenerationSpec& spec, const std::vector<TokenId>& prompt,
                             const HashModelOptions& small, const HashModelOptions& large) {
  const std::string& name = spec.routing().algorithm();
  const auto algorithm = CreateAlgorithm(name, ParametersFromWire(spec.routing()));
  TR_CHECK(algorithm.ok()) << algorithm.status();
  // Whatever is drafted, verification by equality leaves what the large model would have said.
  const bool large_writes_all = name == "always" || name == "speculative";
  OneModel models[] = {OneModel(small, spec), OneModel(large, spec)};
  StopRules rules = *FromWire(spec.stop());
  rules.stop_ids.insert(rules.stop_ids.end(), small.eos_ids.begin(), small.eos_ids.end());
  HashHistory history;
  history.Append(prompt);
  ReferenceAnswer answer;
  RequestState state;
  while (answer.reason == v1::FINISH_REASON_UNSPECIFIED) {
    Choice choice = models[large_writes_all].Next(history);
    if (!large_writes_all) {
      const Decision decision = (*algorithm)
                                    ->Route({.role = Role::kSmall,
                                             .position = history.length(),
                                             .generated = static_cast<int32_t>(answer.ids.size()),
                                             .proposal = choice.id,
                                             .signals = choice.signals,
                                             .tail = {},
                                             .seed = spec.sampling().seed(),
                                             .choice = spec.choice()},
                                            &state);
      if (decision.go) choice = models[1].Next(history);
    }
    answer.ids.push_back(choice.id);
    history.Append({&choice.id, 1});
    for (OneModel& model : models) model.Count(choice.id);
    answer.reason = ToWire(CheckStop(rules, choice.id, static_cast<int32_t>(answer.ids.size())));
  }
  return answer;
}

}  // namespace tokenrouter::simulation
