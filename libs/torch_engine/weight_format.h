// How an engine keeps weights: int8 with one scale per output channel, or the fp32 reference.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace tokenrouter {

enum class WeightFormat { kInt8, kFp32 };

std::string_view WeightFormatName(WeightFormat format);
// INVALID_ARGUMENT unless "int8" or "fp32".
absl::StatusOr<WeightFormat> ParseWeightFormat(std::string_view name);

}  // namespace tokenrouter
