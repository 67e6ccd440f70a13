// Extend passes, the work of a routed token's catch-up: 8 to 64 new ids over 1 to 16 rows with one
// choice each, of our engine and of llama.cpp, alternating. linear_gflops_per_s is the arithmetic
// of the linear layers (the output matrix for the choices only) over the time of the whole pass;
// share_of_best_gemm is that over the best rate of any library at any size, measured first (rows of
// part "gemm"). Every round of a cell also measures what bounds the pass, in the same seconds:
//   share_of_best_library_of_shape  what the fastest of XNNPACK, FBGEMM and oneDNN needs for layers
//       with as many input rows, and for the output matrix with one per choice, over our whole pass
//   share_of_roofline  layers and output matrix, each at the best rate of any size or at the read
//       bandwidth, whichever is slower, over our whole pass
//   reading_ms  all weights at the read bandwidth
#pragma once

#include "absl/status/status.h"
#include "tests/bench/engine/engine_options.h"

namespace tokenrouter {

absl::Status RunExtendPart(const EngineBenchOptions& options);

}  // namespace tokenrouter
