// Reads a ModelDescription from a Hugging Face folder: config.json and, when present,
// generation_config.json (whose eos list wins, as in the library that wrote it).
// Errors: INVALID_ARGUMENT naming file, field and value for unsupported model types, scalings and
// sizes; NOT_FOUND naming file and field when a required one is absent.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "libs/weights/model_description.h"

namespace tokenrouter {

absl::StatusOr<ModelDescription> DescribeHfFolder(const std::string& folder);

}  // namespace tokenrouter
