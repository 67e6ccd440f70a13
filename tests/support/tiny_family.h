// Tiny models of every family the engine serves, by name: what the golden files, write_tiny_model
// and the identity tests choose from.
// Ownership: plain values. Threads: pure functions.
// Errors: INVALID_ARGUMENT naming the family or size and those that exist.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/tiny_model.h"

namespace tokenrouter {

// In the order of their introduction; the first is plain llama.
std::vector<std::string> TinyFamilies();

// `size` is "small" or "large".
absl::StatusOr<TinyModelSpec> TinyFamily(const std::string& family, const std::string& size,
                                         uint64_t seed);

}  // namespace tokenrouter
