#include "services/scheduler/service_rates.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tokenrouter {
namespace {

// A window lasts so long, and until every request has written so much: a request's prompt belongs
// to the cost of a mode, but not alone.
constexpr absl::Duration kWindow = absl::Seconds(2);
constexpr double kWindowTokens = 32;
// What a window counts, and at least an even share of the first few.
constexpr double kLearn = 0.3;
// Of what is not in force; doubles with every spell.
constexpr absl::Duration kMemory = absl::Minutes(2);
constexpr int kMostDoublings = 5;

}  // namespace

int ServiceRates::SizeOf(int32_t load) {
  return std::clamp(static_cast<int>(std::lround(std::log2(std::max(1, load)))), 0, kSizes - 1);
}

bool ServiceRates::Forgotten(const Memory& memory) const {
  const int doublings = std::clamp(memory.spells - 1, 0, kMostDoublings);
  return memory.windows == 0 || seen_ - memory.at > kMemory * (1 << doublings);
}

std::optional<double> ServiceRates::Measured(ServiceMode mode, int32_t load) const {
  const Memory& memory = memories_[static_cast<int>(mode)][SizeOf(load)];
  if (Forgotten(memory)) return std::nullopt;
  return memory.per_request * load;
}

ModePrediction ServiceRates::Correct(ModePrediction prediction, int32_t load) const {
  const auto correct = [&](ServiceMode mode, double* per_s, double* ms_per_token) {
    const std::optional<double> measured = Measured(mode, load);
    if (!measured) return;
    *per_s = *measured;
    *ms_per_token = 1000.0 * load / *measured;
  };
  correct(ServiceMode::kRouted, &prediction.routed_per_s, &prediction.routed_ms_per_token);
  correct(ServiceMode::kLargeAlone, &prediction.large_alone_per_s,
          &prediction.large_alone_ms_per_token);
  return prediction;
}

void ServiceRates::Follow(ServiceMode mode, int32_t live, int32_t load, absl::Time now) {
  const absl::Duration step = live_ > 0 ? now - seen_ : absl::ZeroDuration();
  const int32_t served = std::exchange(live_, live);
  seen_ = now;
  if (std::exchange(mode_, mode) != mode) {
    settling_ = true;
    new_spell_ = true;
    return Begin();
  }
  if (live == 0) settling_ = false;  // Whoever comes now is served in this mode from the start.
  if (load == 0) return Begin();
  if (std::exchange(size_, SizeOf(load)) != SizeOf(load)) {
    new_spell_ = true;
    return Begin();
  }
  served_ += step;
  request_seconds_ += served * absl::ToDoubleSeconds(step);
  const double wanted = kWindowTokens * request_seconds_ / absl::ToDoubleSeconds(served_);
  if (served_ >= kWindow && static_cast<double>(committed_) >= wanted) Finish();
}

void ServiceRates::Conclude() {
  settling_ = false;
  if (request_seconds_ > 0) Finish();
}

void ServiceRates::Begin() {
  committed_ = 0;
  served_ = absl::ZeroDuration();
  request_seconds_ = 0;
}

void ServiceRates::Finish() {
  if (!std::exchange(settling_, false)) {
    Memory* const memory = &memories_[static_cast<int>(mode_)][size_];
    if (std::exchange(new_spell_, false)) {
      if (Forgotten(*memory)) memory->windows = 0;
      ++memory->spells;
    }
    const double per_request = static_cast<double>(committed_) / request_seconds_;
    ++memory->windows;
    memory->per_request +=
        std::max(kLearn, 1.0 / memory->windows) * (per_request - memory->per_request);
    memory->at = seen_;
  }
  Begin();
}

}  // namespace tokenrouter
