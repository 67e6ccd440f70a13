#include "libs/torch_engine/step_time_estimate.h"

#include <algorithm>
#include <bit>

#include "libs/status/check.h"

namespace tokenrouter {

int StepTimeEstimate::ClassOf(int64_t new_ids) {
  TR_CHECK(new_ids > 0);
  const int power = std::bit_width(static_cast<uint64_t>(new_ids)) - 1;
  const bool upper_half = power > 0 && ((new_ids >> (power - 1)) & 1) != 0;
  return std::min(2 * power + (upper_half ? 1 : 0), kClasses - 1);
}

void StepTimeEstimate::Add(int64_t new_ids, absl::Duration took) {
  Average& average = averages_[ClassOf(new_ids)];
  const double share = average.ids == 0.0 ? 1.0 : kNewShare;
  average.ids += share * (static_cast<double>(new_ids) - average.ids);
  average.seconds += share * (absl::ToDoubleSeconds(took) - average.seconds);
}

absl::Duration StepTimeEstimate::Predict(int64_t new_ids) const {
  const auto ids = static_cast<double>(new_ids);
  const Average* below = nullptr;
  const Average* above = nullptr;
  for (const Average& average : averages_) {
    if (average.ids == 0.0) continue;
    if (average.ids <= ids) below = &average;
    if (average.ids >= ids && above == nullptr) above = &average;
  }
  if (below == nullptr)
    return above == nullptr ? absl::ZeroDuration() : absl::Seconds(above->seconds);
  if (above == nullptr) return absl::Seconds(below->seconds * ids / below->ids);
  if (above->ids == below->ids) return absl::Seconds(below->seconds);
  const double share = (ids - below->ids) / (above->ids - below->ids);
  return absl::Seconds(below->seconds + share * (above->seconds - below->seconds));
}

}  // namespace tokenrouter
