// How long a client of the scheduler waits before it dials again. The bound matters to others:
// after its own restart the scheduler gives its peers that long to come back. Pure.
#pragma once

#include <string_view>

#include "absl/time/time.h"

namespace tokenrouter {

inline constexpr absl::Duration kFirstRedial = absl::Milliseconds(50);
inline constexpr absl::Duration kLongestRedial = absl::Seconds(2);
inline constexpr double kRedialFactor = 1.5;

// The wait after the attempt that failed with `failures` failed ones before it since the last
// success. It grows by kRedialFactor up to kLongestRedial; what is returned is between half of that
// and all of it, drawn by the client's name, so that clients that lost the scheduler together do
// not come back together.
absl::Duration RedialWait(std::string_view client, int failures);

}  // namespace tokenrouter
