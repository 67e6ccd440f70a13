// The common beginning of every row of `batching_bench` about one load. Threads: none.
#pragma once

#include <boost/json/object.hpp>

#include "tools/simulate/load_grid.h"

namespace tokenrouter {

inline boost::json::object RowOf(const Load& load, const char* part) {
  return {{"bench", "batching"},
          {"part", part},
          {"set", load.set},
          {"devices", load.devices},
          {"n", load.setup.requests},
          {"r", load.setup.r},
          {"noise", load.setup.noise_cv}};
}

}  // namespace tokenrouter
