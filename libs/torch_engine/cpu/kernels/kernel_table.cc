#include "libs/torch_engine/cpu/kernels/kernel_table.h"

#include <vector>

namespace tokenrouter {

std::span<const KernelTable* const> UsableKernels() {
  static const std::vector<const KernelTable*> usable = [] {
    std::vector<const KernelTable*> tables;
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f")) tables.push_back(&Avx512Kernels());
    if (avx2) tables.push_back(&Avx2Kernels());
    tables.push_back(&ScalarKernels());
    return tables;
  }();
  return usable;
}

}  // namespace tokenrouter
