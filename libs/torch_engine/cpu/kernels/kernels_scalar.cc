#include "libs/torch_engine/cpu/kernels/attention_body.inc"
#include "libs/torch_engine/cpu/kernels/elementwise_body.inc"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/cpu/kernels/kv_store_body.inc"
#include "libs/torch_engine/cpu/kernels/vector_scalar.inc"

namespace tokenrouter {

const KernelTable& ScalarKernels() {
  using V = VectorScalar;
  static const KernelTable table = {
      .name = "scalar",
      .rms_norm = RmsNorm<V>,
      .add = AddTo<V>,
      .swiglu = SwiGlu<V>,
      .rotate = Rotate<V>,
      .quantize = Quantize<V>,
      .join = Join<V>,
      .fp32_kv = {.store = Store<V, float>, .attend = Attend<V, float>},
      .int8_kv = {.store = Store<V, int8_t>, .attend = Attend<V, int8_t>}};
  return table;
}

}  // namespace tokenrouter
