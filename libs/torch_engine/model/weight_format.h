// How an engine keeps weights: int8 with one scale per output channel; int4 with one scale per 32
// inputs of an output channel, and the output matrix in int8; or the fp32 reference.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace tokenrouter {

enum class WeightFormat { kInt8, kInt4, kFp32 };

std::string_view WeightFormatName(WeightFormat format);
// INVALID_ARGUMENT unless "int8", "int4" or "fp32".
absl::StatusOr<WeightFormat> ParseWeightFormat(std::string_view name);

}  // namespace tokenrouter
