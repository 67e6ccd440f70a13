#include "libs/sampling/row_kernels.h"

namespace tokenrouter {

extern const RowKernels kRowKernelsSse2;
extern const RowKernels kRowKernelsAvx2;
extern const RowKernels kRowKernelsAvx512;

std::vector<const RowKernels*> SupportedRowKernels() {
  std::vector<const RowKernels*> kernels = {&kRowKernelsSse2};
  if (__builtin_cpu_supports("avx2")) kernels.push_back(&kRowKernelsAvx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    kernels.push_back(&kRowKernelsAvx512);
  }
  return kernels;
}

const RowKernels& BestRowKernels() {
  static const RowKernels& best = *SupportedRowKernels().back();
  return best;
}

}  // namespace tokenrouter
