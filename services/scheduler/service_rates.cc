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
// After a change of mode a request goes on in the old one until its window or its turn ends.
constexpr double kSettleTokens = 64;
// A window that a change of load cuts short counts from this share on.
constexpr double kLeastShare = 0.25;
// Of what was remembered, after a whole window more.
constexpr double kKeep = 0.7;
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
  return memory.tokens / memory.request_seconds * load;
}

int ServiceRates::Windows(ServiceMode mode, int32_t load) const {
  const Memory& memory = memories_[static_cast<int>(mode)][SizeOf(load)];
  return Forgotten(memory) ? 0 : memory.windows;
}

ModePrediction ServiceRates::Correct(ModePrediction prediction, int32_t load) const {
  const std::optional<double> routed = Measured(ServiceMode::kRouted, load);
  const std::optional<double> large_alone = Measured(ServiceMode::kLargeAlone, load);
  // What takes from the one mode beside the plan, strangers above all, takes from the other as
  // well.
  const auto share = [](std::optional<double> measured, double predicted) {
    return measured ? std::min(1.0, *measured / predicted) : 1.0;
  };
  const double of_routed = share(routed, prediction.routed_per_s);
  const double of_large_alone = share(large_alone, prediction.large_alone_per_s);
  prediction.routed_per_s = routed.value_or(prediction.routed_per_s * of_large_alone);
  prediction.large_alone_per_s = large_alone.value_or(prediction.large_alone_per_s * of_routed);
  prediction.routed_ms_per_token = 1000.0 * load / prediction.routed_per_s;
  prediction.large_alone_ms_per_token = 1000.0 * load / prediction.large_alone_per_s;
  return prediction;
}

void ServiceRates::Follow(ServiceMode mode, int32_t live, int32_t load, absl::Time now) {
  const absl::Duration step = live_ > 0 ? now - seen_ : absl::ZeroDuration();
  const int32_t served = std::exchange(live_, live);
  seen_ = now;
  if (mode != mode_) {
    Interrupt();
    mode_ = mode;
    settling_ = new_spell_ = true;
    return;
  }
  if (live == 0) settling_ = false;  // Whoever comes now is served in this mode from the start.
  if (load == 0) return Interrupt();
  if (SizeOf(load) != size_) {
    Interrupt();
    size_ = SizeOf(load);
    new_spell_ = true;
    return;
  }
  served_ += step;
  request_seconds_ += served * absl::ToDoubleSeconds(step);
  if (served_ < kWindow || Written() < (settling_ ? kSettleTokens : kWindowTokens)) return;
  if (settling_) {
    settling_ = false;
    return Begin();
  }
  Conclude();
}

double ServiceRates::Written() const {
  if (request_seconds_ <= 0) return 0;
  return static_cast<double>(committed_) * absl::ToDoubleSeconds(served_) / request_seconds_;
}

void ServiceRates::Conclude() {
  if (request_seconds_ <= 0) return;
  Remember(1);
  ++memories_[static_cast<int>(mode_)][size_].windows;
  settling_ = false;
}

void ServiceRates::Interrupt() {
  const double share = std::min(1.0, Written() / kWindowTokens);
  if (!settling_ && share >= kLeastShare) Remember(share);
  Begin();
}

void ServiceRates::Begin() {
  committed_ = 0;
  served_ = absl::ZeroDuration();
  request_seconds_ = 0;
}

void ServiceRates::Remember(double share) {
  Memory* const memory = &memories_[static_cast<int>(mode_)][size_];
  if (std::exchange(new_spell_, false)) {
    if (Forgotten(*memory)) *memory = {.spells = memory->spells};
    ++memory->spells;
  }
  const double keep = std::pow(kKeep, share);
  memory->tokens = keep * memory->tokens + static_cast<double>(committed_);
  memory->request_seconds = keep * memory->request_seconds + request_seconds_;
  memory->at = seen_;
  Begin();
}

}  // namespace tokenrouter
