// Row kernels for AVX-512 (F, DQ, BW, VL).
#include <immintrin.h>

#include "libs/sampling/row_kernels_body.h"

namespace tokenrouter {
namespace {

struct Avx512 {
  typedef float F __attribute__((vector_size(64)));
  typedef int32_t I __attribute__((vector_size(64)));
  typedef uint64_t U __attribute__((vector_size(64)));
  static U MultiplyLow(U a, U b) {
    return (U)_mm512_maskz_mul_epu32(__mmask8{0xFF}, (__m512i)a, (__m512i)b);
  }
};

}  // namespace

extern const RowKernels kRowKernelsAvx512 = MakeRowKernels<Avx512>("avx512");

}  // namespace tokenrouter
