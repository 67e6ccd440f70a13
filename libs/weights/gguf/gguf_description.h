// Reads a ModelDescription from the metadata and tensor directory of a GGUF file.
// Errors: INVALID_ARGUMENT naming file, key and value for unsupported architectures, scalings and
// sizes; NOT_FOUND naming file and key when a required one is absent.
#pragma once

#include "absl/status/statusor.h"
#include "libs/weights/description/model_description.h"
#include "libs/weights/gguf/gguf_file.h"

namespace tokenrouter {

absl::StatusOr<ModelDescription> DescribeGguf(const GgufFile& file);

}  // namespace tokenrouter
