// JSON text with human-readable numbers: 0.25 where Boost.JSON writes 2.5E-1. It is meant for log
// lines and replies. Threads: pure.
#pragma once

#include <boost/json/value.hpp>
#include <string>

namespace tokenrouter {

// Doubles are written with the fewest digits that read back as the same number, and with a point or
// an exponent, so that they stay doubles; NaN and infinities, which JSON lacks, are null. Calls
// itself for each level of nesting: for values that we made, not for those that a peer sent.
std::string PlainJson(const boost::json::value& value);

// The double nearest to the shortest decimal of `value`: 0.1 for 0.1f, not 0.10000000149011612.
// Finite values only.
double ShortestDecimal(float value);

}  // namespace tokenrouter
