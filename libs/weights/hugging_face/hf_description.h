// Reads a ModelDescription from a Hugging Face folder: config.json and, when present,
// generation_config.json (whose eos list wins, as in the library that wrote it).
// Errors: INVALID_ARGUMENT naming file, field and value for unsupported model types, scalings and
// sizes; NOT_FOUND naming file and field when a required one is absent.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "libs/weights/description/model_description.h"

namespace tokenrouter {

absl::StatusOr<ModelDescription> DescribeHfFolder(const std::string& folder);

// The same from the contents of the two files, for fuzzers; `folder` is only for messages and the
// model's name.
absl::StatusOr<ModelDescription> DescribeHf(std::span<const std::byte> config,
                                            std::optional<std::span<const std::byte>> generation,
                                            const std::string& folder);

}  // namespace tokenrouter
