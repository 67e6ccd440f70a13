// Row kernels that every x86-64 processor runs.
#include <emmintrin.h>

#include "libs/sampling/row_kernels_body.h"

namespace tokenrouter {
namespace {

struct Sse2 {
  typedef float F __attribute__((vector_size(16)));
  typedef int32_t I __attribute__((vector_size(16)));
  typedef uint64_t U __attribute__((vector_size(16)));
  static U MultiplyLow(U a, U b) { return (U)_mm_mul_epu32((__m128i)a, (__m128i)b); }
};

}  // namespace

extern const RowKernels kRowKernelsSse2 = MakeRowKernels<Sse2>("sse2");

}  // namespace tokenrouter
