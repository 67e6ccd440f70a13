// Jitter keeps peers apart that would all act at the same moment: each draws its own share of a
// wait, by its name. Deterministic, so that a run can be repeated, and the same in every process.
// Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace tokenrouter {

// A share in [0, 1), drawn by the name and the number of the occasion.
double Jitter(std::string_view name, uint64_t number);

}  // namespace tokenrouter
