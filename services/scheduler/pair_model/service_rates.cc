#include "services/scheduler/pair_model/service_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tokenrouter {
namespace {

// A window lasts so long, and until every request has written so much of its answer: the rows of
// routed service are dearest at its beginning.
constexpr absl::Duration kWindow = absl::Seconds(2);
constexpr double kAnswerShare = 0.5;
constexpr double kLeastTokens = 8, kMostTokens = 48;
constexpr double kTokensOfUnknown = 32;  // While the length of answers is unknown.
// Where answers are at most so long, prompts matter, and a window must have one.
constexpr double kShortAnswer = 256;
// After a change of mode a request goes on in the old one until its window or its decode grant
// ends.
constexpr double kSettleTokens = 64;
// A window that a change of load cuts short counts from this share on.
constexpr double kLeastShare = 0.25;
// A time per token is known where it was seen for this share of the tokens.
constexpr double kLeastDecoded = 0.25;
// Of what was remembered, after a whole window more.
constexpr double kKeep = 0.7;
// Of what is not in force; doubles with every spell.
constexpr absl::Duration kMemory = absl::Minutes(2);
constexpr int kMostDoublings = 5;

// A prediction counts like so many windows beside a measurement that is doubted: one window is the
// beginning of some answers, or a moment of the machine.
constexpr double kPredictionWindows = 1;
constexpr double kNoDoubt = std::numeric_limits<double>::infinity();

struct Evidence {
  std::optional<double> measured;
  double windows = kNoDoubt;  // That it counts for.

  // At most 1: what is left of a prediction.
  double ShareOf(double predicted) const {
    return measured ? std::min(1.0, *measured / predicted) : 1.0;
  }
  double With(double predicted) const {
    if (!measured || windows == kNoDoubt) return measured.value_or(predicted);
    return (windows * *measured + kPredictionWindows * predicted) / (windows + kPredictionWindows);
  }
};

// Puts what was measured of either mode in the place of what was predicted. What takes from the one
// beside the plan, co-located load above all, takes from the other as well.
void Replace(const Evidence& of_routed, const Evidence& of_large_alone, double* routed,
             double* large_alone) {
  const double left_of_routed = of_routed.ShareOf(*routed);
  const double left_of_large_alone = of_large_alone.ShareOf(*large_alone);
  *routed = of_routed.With(*routed * left_of_large_alone);
  *large_alone = of_large_alone.With(*large_alone * left_of_routed);
}

}  // namespace

int ServiceRates::SizeOf(int32_t load) {
  return std::clamp(static_cast<int>(std::lround(std::log2(std::max(1, load)))), 0, kSizes - 1);
}

bool ServiceRates::Forgotten(const Memory& memory) const {
  const int doublings = std::clamp(memory.spells - 1, 0, kMostDoublings);
  return seen_ - memory.at > kMemory * (1 << doublings);
}

const ServiceRates::Memory* ServiceRates::Recall(ServiceMode mode, int32_t load) const {
  const Memory& memory = memories_[static_cast<int>(mode)][SizeOf(load)];
  return memory.windows < 1 || Forgotten(memory) ? nullptr : &memory;
}

std::optional<double> ServiceRates::Measured(ServiceMode mode, int32_t load) const {
  const Memory* const memory = Recall(mode, load);
  if (memory == nullptr) return std::nullopt;
  const Tally& all = memory->all;
  const std::optional<double> ms = MeasuredMsPerToken(mode, load);
  if (!ms || answer_tokens_ <= 0 || all.begun <= 0) return all.tokens / all.request_seconds * load;
  // While prompts are prefilled the others continue decoding, perhaps more slowly.
  const double tokens_meanwhile = all.tokens - memory->decoding.tokens;
  const double prompts_ms =
      1000 * (all.request_seconds - memory->decoding.request_seconds) - *ms * tokens_meanwhile;
  const double prompt_ms = std::max(0.0, prompts_ms) / all.begun;
  return 1000.0 * load / (*ms + prompt_ms / answer_tokens_);
}

std::optional<double> ServiceRates::MeasuredMsPerToken(ServiceMode mode, int32_t load) const {
  const Memory* const memory = Recall(mode, load);
  if (memory == nullptr) return std::nullopt;
  const Tally& decoding = memory->decoding;
  if (decoding.tokens < std::max(1.0, kLeastDecoded * memory->all.tokens)) return std::nullopt;
  return 1000.0 * decoding.request_seconds / decoding.tokens;
}

int ServiceRates::Windows(ServiceMode mode, int32_t load) const {
  const Memory* const memory = Recall(mode, load);
  return memory == nullptr ? 0 : static_cast<int>(memory->windows);
}

ModePrediction ServiceRates::Correct(ModePrediction prediction, int32_t load,
                                     std::optional<ServiceMode> doubted) const {
  const auto windows = [&](ServiceMode mode) {
    return mode == doubted ? Windows(mode, load) : kNoDoubt;
  };
  const auto rate = [&](ServiceMode mode) { return Evidence{Measured(mode, load), windows(mode)}; };
  Replace(rate(ServiceMode::kRouted), rate(ServiceMode::kLargeAlone), &prediction.routed_per_s,
          &prediction.large_alone_per_s);
  if (prediction.routed_ms_per_token <= 0 || prediction.large_alone_ms_per_token <= 0) {
    return prediction;
  }
  const auto speed = [&](ServiceMode mode) {
    const std::optional<double> ms = MeasuredMsPerToken(mode, load);
    return Evidence{ms ? std::optional(1 / *ms) : std::nullopt, windows(mode)};
  };
  double routed = 1 / prediction.routed_ms_per_token;
  double large_alone = 1 / prediction.large_alone_ms_per_token;
  Replace(speed(ServiceMode::kRouted), speed(ServiceMode::kLargeAlone), &routed, &large_alone);
  prediction.routed_ms_per_token = 1 / routed;
  prediction.large_alone_ms_per_token = 1 / large_alone;
  return prediction;
}

void ServiceRates::Follow(ServiceMode mode, int32_t live, int32_t load, absl::Time now) {
  const double seconds = live_ > 0 ? absl::ToDoubleSeconds(now - seen_) : 0;
  const Tally passed = {.tokens = static_cast<double>(std::exchange(fresh_, 0)),
                        .request_seconds = live_ * seconds,
                        .begun = static_cast<double>(std::exchange(fresh_begun_, 0)),
                        .seconds = seconds};
  live_ = live;
  seen_ = now;
  pending_.Fade(1, passed);
  if (reading_ == 0 || passed.begun > 0) window_.Fade(1, std::exchange(pending_, {}));
  const bool all_wrote = std::exchange(all_wrote_, reading_ == 0);
  if (all_wrote && all_wrote_) decoding_.Fade(1, passed);
  if (mode != mode_) {
    Interrupt();
    mode_ = mode;
    settling_ = new_spell_ = true;
    return;
  }
  if (live == 0 && std::exchange(settling_, false)) {
    BeginWindow();  // Requests that come now are served in this mode from the start.
  }
  if (load == 0) return Interrupt();
  if (SizeOf(load) != size_) {
    Interrupt();
    size_ = SizeOf(load);
    new_spell_ = true;
    return;
  }
  if (!WindowIsWhole()) return;
  if (!std::exchange(settling_, false)) Remember(1);
  BeginWindow();
}

bool ServiceRates::WindowIsWhole() const {
  if (window_.seconds < absl::ToDoubleSeconds(kWindow)) return false;
  if (settling_) return TokensPerRequest() >= kSettleTokens;
  const bool prompts_matter = answer_tokens_ > 0 && answer_tokens_ <= kShortAnswer;
  return TokensPerRequest() >= WindowTokens() && (window_.begun > 0 || !prompts_matter);
}

double ServiceRates::WindowTokens() const {
  if (answer_tokens_ <= 0) return kTokensOfUnknown;
  return std::clamp(kAnswerShare * answer_tokens_, kLeastTokens, kMostTokens);
}

double ServiceRates::TokensPerRequest() const {
  if (window_.request_seconds <= 0) return 0;
  return window_.tokens * window_.seconds / window_.request_seconds;
}

void ServiceRates::Conclude() {
  window_.Fade(1, std::exchange(pending_, {}));
  if (window_.request_seconds <= 0) return;
  Remember(1);
  settling_ = false;
}

void ServiceRates::Interrupt() {
  const double share = std::min(1.0, TokensPerRequest() / WindowTokens());
  if (!settling_ && share >= kLeastShare) Remember(share);
  pending_ = {};
  BeginWindow();
}

void ServiceRates::BeginWindow() { window_ = decoding_ = {}; }

void ServiceRates::Remember(double share) {
  Memory* const memory = &memories_[static_cast<int>(mode_)][size_];
  if (std::exchange(new_spell_, false)) {
    if (Forgotten(*memory)) *memory = {.spells = memory->spells};
    ++memory->spells;
  }
  const double keep = std::pow(kKeep, share);
  memory->all.Fade(keep, window_);
  memory->decoding.Fade(keep, decoding_);
  memory->windows += share;
  memory->at = seen_;
  BeginWindow();
}

}  // namespace tokenrouter
