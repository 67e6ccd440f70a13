// How an engine keeps keys and values: as floats, or in 8 bits with one scale per token and kv head
// for keys and one for values.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

namespace tokenrouter {

enum class KvFormat { kFp32, kInt8 };

std::string_view KvFormatName(KvFormat format);
// INVALID_ARGUMENT unless "fp32" or "int8".
absl::StatusOr<KvFormat> ParseKvFormat(std::string_view name);

}  // namespace tokenrouter
