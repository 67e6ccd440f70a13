// Row kernels for AVX2.
#include <immintrin.h>

#include "libs/sampling/row_kernels_body.h"

namespace tokenrouter {
namespace {

struct Avx2 {
  typedef float F __attribute__((vector_size(32)));
  typedef int32_t I __attribute__((vector_size(32)));
  typedef uint64_t U __attribute__((vector_size(32)));
  static U MultiplyLow(U a, U b) { return (U)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
};

}  // namespace

extern const RowKernels kRowKernelsAvx2 = MakeRowKernels<Avx2>("avx2");

}  // namespace tokenrouter
