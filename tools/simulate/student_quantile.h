// Student's t distribution, as confidence intervals need it. Threads: none.
#pragma once

#include <cmath>
#include <iterator>

namespace tokenrouter {

// Its quantile at .975 for that many degrees of freedom; infinite for none.
inline double StudentQuantile975(int freedom) {
  static constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                          2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                          2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
  if (freedom < 1) return INFINITY;
  const auto last = static_cast<int>(std::size(kQuantiles));
  return freedom <= last ? kQuantiles[freedom - 1] : 1.96 + 2.5 / freedom;
}

}  // namespace tokenrouter
