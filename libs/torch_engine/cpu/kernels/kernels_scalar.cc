#include "libs/torch_engine/cpu/kernels/kernel_table_body.inc"
#include "libs/torch_engine/cpu/kernels/vector_scalar.inc"

namespace tokenrouter {

const KernelTable& ScalarKernels() { return TableOf<VectorScalar>("scalar"); }

}  // namespace tokenrouter
