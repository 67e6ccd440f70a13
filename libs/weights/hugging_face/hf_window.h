// Which positions the layers of a Hugging Face model see: everything, or a sliding window. Models
// whose layers differ are refused.
// Ownership, threads: a free function without state. Units: tokens; 0 means no window.
// Errors: INVALID_ARGUMENT naming file and field.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace tokenrouter {

// `type` is the config's model_type, `layers` the number of layers.
absl::StatusOr<int64_t> ReadHfWindow(const boost::json::object& config, const std::string& type,
                                     int64_t layers, const std::string& where);

}  // namespace tokenrouter
