// The rotary embedding of a Hugging Face model: rope_theta and rope_scaling, or rope_parameters,
// which newer files have instead of both.
// Ownership, threads: a free function without state.
// Errors: INVALID_ARGUMENT or NOT_FOUND naming file and field.
#pragma once

#include <boost/json/object.hpp>
#include <string>

#include "absl/status/status.h"
#include "libs/weights/description/rope_frequencies.h"

namespace tokenrouter {

// Fills everything but `rope.dim`. `context_length` is max_position_embeddings.
absl::Status ReadHfRope(const boost::json::object& config, const std::string& where,
                        int64_t context_length, RopeDescription& rope);

}  // namespace tokenrouter
