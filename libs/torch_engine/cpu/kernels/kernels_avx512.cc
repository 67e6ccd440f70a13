#include "libs/torch_engine/cpu/kernels/kernel_table_body.inc"
#include "libs/torch_engine/cpu/kernels/vector_avx512.inc"

namespace tokenrouter {

const KernelTable& Avx512Kernels() { return TableOf<VectorAvx512>("avx512"); }

}  // namespace tokenrouter
