#include "libs/torch_engine/weight_format.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

std::string_view WeightFormatName(WeightFormat format) {
  return format == WeightFormat::kInt8 ? "int8" : "fp32";
}

absl::StatusOr<WeightFormat> ParseWeightFormat(std::string_view name) {
  for (const WeightFormat format : {WeightFormat::kInt8, WeightFormat::kFp32}) {
    if (name == WeightFormatName(format)) return format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("weight format is \"", std::string(name), "\", allowed: int8, fp32"));
}

}  // namespace tokenrouter
