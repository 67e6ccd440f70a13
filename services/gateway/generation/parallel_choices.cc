#include "services/gateway/generation/parallel_choices.h"

#include <algorithm>
#include <utility>

#include "libs/status/check.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<ParallelChoices>> ParallelChoices::Start(
    TokenRequest request, int count, const GenerationEnvironment& environment,
    const std::function<void()>& wake) {
  TR_CHECK(count >= 1) << count;
  std::vector<Choice> choices;
  for (int index = 0; index < count; ++index) {
    const bool last = index + 1 == count;
    TokenRequest one = last ? std::move(request) : request;
    one.spec.set_choice(static_cast<uint32_t>(index));
    TR_ASSIGN_OR_RETURN(auto generation, Generation::Start(std::move(one), environment, wake));
    choices.push_back({std::move(generation)});
  }
  return std::unique_ptr<ParallelChoices>(new ParallelChoices(std::move(choices)));
}

ParallelChoices::Progress ParallelChoices::Poll() {
  Progress progress;
  for (int index = 0; index < size(); ++index) {
    Choice& choice = choices_[index];
    if (choice.ended) continue;
    Generation::Progress of_one = choice.generation->Poll();
    choice.ended = of_one.ended;
    if (progress.error.ok()) progress.error = of_one.error;
    if (of_one.pieces.empty() && !of_one.ended) continue;
    const bool done = of_one.ended && of_one.error.ok();
    progress.news.push_back({index, std::move(of_one.pieces),
                             done ? choice.generation->reason() : FinishReason::kNone});
  }
  progress.ended = !progress.error.ok() ||
                   std::ranges::all_of(choices_, [](const Choice& choice) { return choice.ended; });
  if (!progress.error.ok()) choices_.clear();
  return progress;
}

void ParallelChoices::Acknowledge() {
  for (const Choice& choice : choices_) choice.generation->Acknowledge();
}

UsageCounts ParallelChoices::usage() const {
  TR_CHECK(!choices_.empty()) << "a choice has failed";
  UsageCounts sum = choices_[0].generation->usage();
  for (int index = 1; index < size(); ++index) {
    const UsageCounts& usage = choices_[index].generation->usage();
    sum.cached_tokens = std::min(sum.cached_tokens, usage.cached_tokens);
    sum.small_tokens += usage.small_tokens;
    sum.large_tokens += usage.large_tokens;
    sum.large_alone_tokens += usage.large_alone_tokens;
    sum.degraded = sum.degraded || usage.degraded;
  }
  return sum;
}

}  // namespace tokenrouter
