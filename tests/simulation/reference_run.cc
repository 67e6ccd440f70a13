#include "tests/simulation/reference_run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/routing/algorithms/algorithm_registry.h"
#include "libs/routing/wire_types.h"
#include "libs/status/check.h"
#include "libs/tokens/stop_rules.h"

namespace tokenrouter::simulation {
namespace {

class OneModel {
 public:
  OneModel(const HashModelOptions& options, const wire::GenerationSpec& spec) : model_(options) {
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

// Tokens that the algorithm has the large model write from here on, given the small model's choice;
// 0: the small model writes it.
int32_t AskedOfLarge(const Algorithm& algorithm, const wire::GenerationSpec& spec,
                     const HashHistory& history, const Choice& choice, RequestState* state) {
  const Decision decision = algorithm.Route({.role = Role::kSmall,
                                             .position = history.length(),
                                             .generated = history.length() - spec.prompt_length(),
                                             .proposal = choice.id,
                                             .signals = choice.signals,
                                             .tail = {},
                                             .seed = spec.sampling().seed(),
                                             .choice = spec.choice()},
                                            state);
  if (!decision.go) return 0;
  TR_CHECK(decision.window.kind == Window::Kind::kTokens);
  return decision.window.tokens;
}

}  // namespace

StopRules RulesOf(const wire::GenerationSpec& spec, const HashModelOptions& model) {
  StopRules rules = *FromWire(spec.stop());
  rules.stop_ids.insert(rules.stop_ids.end(), model.eos_ids.begin(), model.eos_ids.end());
  return rules;
}

ReferenceAnswer RunReference(const wire::GenerationSpec& spec, const std::vector<TokenId>& prompt,
                             const HashModelOptions& small, const HashModelOptions& large) {
  const std::string& name = spec.routing().algorithm();
  const auto algorithm = CreateAlgorithm(name, ParametersFromWire(spec.routing()));
  TR_CHECK(algorithm.ok()) << algorithm.status();
  // Whatever is drafted, verification by equality yields what the large model would have chosen.
  const bool large_writes_all = name == "always" || name == "speculative";
  OneModel models[] = {OneModel(small, spec), OneModel(large, spec)};
  const StopRules rules = RulesOf(spec, small);
  HashHistory history;
  history.Append(prompt);
  ReferenceAnswer answer;
  RequestState state;
  int32_t window = 0;  // Left of the large model's.
  while (answer.reason == api::FINISH_REASON_UNSPECIFIED) {
    Choice choice = models[large_writes_all || window > 0].Next(history);
    if (!large_writes_all && window == 0) {
      window = AskedOfLarge(**algorithm, spec, history, choice, &state);
      if (window > 0) choice = models[1].Next(history);
    }
    window = std::max(0, window - 1);
    answer.ids.push_back(choice.id);
    history.Append({&choice.id, 1});
    for (OneModel& model : models) model.Count(choice.id);
    answer.reason = ToWire(CheckStop(rules, choice.id, static_cast<int32_t>(answer.ids.size())));
  }
  return answer;
}

std::string Rescore(const wire::GenerationSpec& spec, const std::vector<TokenId>& prompt,
                    const std::vector<TokenId>& ids, const std::string& authors,
                    const HashModelOptions& small, const HashModelOptions& large) {
  const auto algorithm =
      CreateAlgorithm(spec.routing().algorithm(), ParametersFromWire(spec.routing()));
  TR_CHECK(algorithm.ok() && ids.size() == authors.size());
  OneModel models[] = {OneModel(small, spec), OneModel(large, spec)};
  const StopRules rules = RulesOf(spec, small);
  HashHistory history;
  history.Append(prompt);
  RequestState state;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool by_large = authors[i] == static_cast<char>(Author::kLarge);
    // A draft keeps its author only where the large model chooses the same.
    const bool judged_by_large = by_large || spec.routing().algorithm() == "speculative";
    const Choice choice = models[judged_by_large].Next(history);
    if (choice.id != ids[i]) {
      return absl::StrCat("token ", i, " by ", by_large ? "large" : "small", " is ", ids[i],
                          " instead of ", choice.id);
    }
    if (!judged_by_large && AskedOfLarge(**algorithm, spec, history, choice, &state) > 0) {
      return absl::StrCat("token ", i, " was not the small model's to write");
    }
    history.Append({&ids[i], 1});
    for (OneModel& model : models) model.Count(ids[i]);
    const bool stops = CheckStop(rules, ids[i], static_cast<int32_t>(i + 1)) != FinishReason::kNone;
    if (stops && i + 1 < ids.size()) return absl::StrCat("continues after its end at token ", i);
  }
  return "";
}

}  // namespace tokenrouter::simulation
