// Step times of one side by batch size: times[b] is the predicted duration in milliseconds of a
// step of b rows, and times[0] is unused. Where the cost also depends on new ids, the caller folds
// their mean per row in (c_row + c_tok / r).
#pragma once

#include <span>

namespace tokenrouter {

using StepTimes = std::span<const double>;

}  // namespace tokenrouter
