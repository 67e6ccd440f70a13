#include "libs/torch_engine/cpu/kernels/kernel_table_body.inc"
#include "libs/torch_engine/cpu/kernels/vector_avx2.inc"

namespace tokenrouter {

const KernelTable& Avx2Kernels() { return TableOf<VectorAvx2>("avx2"); }

}  // namespace tokenrouter
