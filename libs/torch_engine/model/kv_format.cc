#include "libs/torch_engine/model/kv_format.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

std::string_view KvFormatName(KvFormat format) {
  switch (format) {
    case KvFormat::kFp32:
      return "fp32";
    case KvFormat::kInt8:
      return "int8";
  }
  return "";
}

absl::StatusOr<KvFormat> ParseKvFormat(std::string_view name) {
  for (const KvFormat format : {KvFormat::kFp32, KvFormat::kInt8}) {
    if (name == KvFormatName(format)) return format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("KV format is \"", std::string(name), "\", allowed: fp32, int8"));
}

}  // namespace tokenrouter
