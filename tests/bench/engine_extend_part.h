// Extend passes, the work of a routed token's catch-up: 8 to 64 new ids over 1 to 16 rows with one
// choice each, of our engine and of llama.cpp, taking turns. linear_gflops_per_s is the arithmetic
// of the linear layers (the output matrix for the choices only) over the time of the whole pass;
// share_of_best_gemm is that over the best rate of any library measured in the same run, on the
// model's shapes, share_of_best_gemm_of_tokens over the best at the pass's number of ids. Rows of
// part "gemm" are those rates.
#pragma once

#include "absl/status/status.h"
#include "tests/bench/engine_options.h"

namespace tokenrouter {

absl::Status RunExtendPart(const EngineBenchOptions& options);

}  // namespace tokenrouter
