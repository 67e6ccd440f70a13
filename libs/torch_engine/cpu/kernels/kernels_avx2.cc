#include "libs/torch_engine/cpu/kernels/attention_body.inc"
#include "libs/torch_engine/cpu/kernels/elementwise_body.inc"
#include "libs/torch_engine/cpu/kernels/kernel_table.h"
#include "libs/torch_engine/cpu/kernels/kv_store_body.inc"
#include "libs/torch_engine/cpu/kernels/vector_avx2.inc"

namespace tokenrouter {

const KernelTable& Avx2Kernels() {
  using V = VectorAvx2;
  static const KernelTable table = {
      .name = "avx2",
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
