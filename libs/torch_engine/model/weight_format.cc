#include "libs/torch_engine/model/weight_format.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

std::string_view WeightFormatName(WeightFormat format) {
  switch (format) {
    case WeightFormat::kInt8:
      return "int8";
    case WeightFormat::kInt4:
      return "int4";
    case WeightFormat::kFp32:
      return "fp32";
  }
  return "";
}

absl::StatusOr<WeightFormat> ParseWeightFormat(std::string_view name) {
  for (const WeightFormat format :
       {WeightFormat::kInt8, WeightFormat::kInt4, WeightFormat::kFp32}) {
    if (name == WeightFormatName(format)) return format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("weight format is \"", std::string(name), "\", allowed: int8, int4, fp32"));
}

}  // namespace tokenrouter
