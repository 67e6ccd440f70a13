#include "libs/synthetic/step_curve.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libs/status/status_macros.h"
#include "libs/tokens/keyed_random.h"

namespace tokenrouter {
namespace {

// No step is drawn shorter than this part of its mean.
constexpr double kLeastNoiseFactor = 0.2;
constexpr double kLargestNoise = 1.0;
constexpr double kLargestMs = 1e6;

struct NamedCurve {
  absl::string_view name;
  StepCurve curves[kRoles];  // Small, large.
};

const NamedCurve kNamedCurves[] = {
    {"h200", {{3.0, 0.0, 0.01}, {15.0, 0.02, 0.128}}},
    {"8b", {{2.5, 0.0, 0.004}, {5.0, 0.01, 0.032}}},
    {"cpu", {{22.0, 0.0, 7.2}, {45.0, 1.0, 19.0}}},
    {"vnni", {{20.0, 0.0, 2.5}, {45.0, 0.5, 6.0}}},
    {"roofline", {{6.0, 0.0, 6.0 / 64, true}, {24.0, 0.0, 24.0 / 320, true}}},
    {"fast", {{0.5, 0.0, 0.002}, {1.0, 0.0, 0.005}}},
    {"instant", {{}, {}}},
};

absl::Status Invalid(absl::string_view text, absl::string_view what) {
  std::vector<absl::string_view> names;
  for (const NamedCurve& named : kNamedCurves) names.push_back(named.name);
  return absl::InvalidArgumentError(absl::StrCat("step curve \"", text, "\": ", what,
                                                 "; give one of ", absl::StrJoin(names, ", "),
                                                 ", or base=MS,row=MS,id=MS[,roofline][,cv=X]"));
}

absl::Status ParseItem(absl::string_view text, absl::string_view item, StepCurve* curve) {
  if (item == "roofline") {
    curve->roofline = true;
    return absl::OkStatus();
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(item, absl::MaxSplits('=', 1));
  double value = 0.0;
  if (!absl::SimpleAtod(parts.second, &value)) {
    return Invalid(text, absl::StrCat("\"", item, "\" is not a known name or key=number"));
  }
  const double largest = parts.first == "cv" ? kLargestNoise : kLargestMs;
  if (!(value >= 0.0 && value <= largest)) {
    return Invalid(text, absl::StrCat("\"", item, "\" is outside [0, ", largest, "]"));
  }
  if (parts.first == "base") {
    curve->base_ms = value;
  } else if (parts.first == "row") {
    curve->row_ms = value;
  } else if (parts.first == "id") {
    curve->id_ms = value;
  } else if (parts.first == "cv") {
    curve->noise = value;
  } else {
    return Invalid(text, absl::StrCat("unknown key \"", parts.first, "\""));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Duration StepCurve::Mean(int rows, int64_t new_ids) const {
  const double variable = row_ms * rows + id_ms * static_cast<double>(new_ids);
  return absl::Milliseconds(roofline ? std::max(base_ms, variable) : base_ms + variable);
}

absl::Duration StepCurve::Draw(int rows, int64_t new_ids, uint64_t seed, int64_t step) const {
  const absl::Duration mean = Mean(rows, new_ids);
  if (noise == 0.0) return mean;
  // A standard normal by Box and Muller.
  const RandomKey key{.seed = seed ^ (static_cast<uint64_t>(step) * 0x9E3779B97F4A7C15u)};
  const double normal = std::sqrt(-2.0 * std::log(KeyedUniform(key, 0))) *
                        std::cos(2.0 * M_PI * KeyedUniform(key, 1));
  return mean * std::max(kLeastNoiseFactor, 1.0 + noise * normal);
}

absl::StatusOr<StepCurve> StepCurve::Parse(absl::string_view text, Role role) {
  StepCurve curve;
  std::vector<absl::string_view> items = absl::StrSplit(text, ',');
  for (const NamedCurve& named : kNamedCurves) {
    if (items.front() != named.name) continue;
    curve = named.curves[static_cast<int>(role)];
    items.erase(items.begin());
    break;
  }
  for (const absl::string_view item : items) TR_RETURN_IF_ERROR(ParseItem(text, item, &curve));
  return curve;
}

std::string StepCurve::ToString() const {
  return absl::StrCat("base=", base_ms, ",row=", row_ms, ",id=", id_ms, roofline ? ",roofline" : "",
                      ",cv=", noise);
}

}  // namespace tokenrouter
