#include "libs/torch_engine/cpu/kernels/int8_gemm.h"

namespace tokenrouter {

const Int8Gemm* UsableInt8Gemm() {
  __builtin_cpu_init();
  const bool usable = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
  return usable ? &Avx512VnniGemm() : nullptr;
}

}  // namespace tokenrouter
