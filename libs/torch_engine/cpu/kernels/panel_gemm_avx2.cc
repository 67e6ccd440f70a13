// Compiled for AVX2: only UsablePanelGemms() may lead here. Everything but the table is in an
// unnamed namespace and no inline function of another header is called.
#include <immintrin.h>

#include "libs/torch_engine/cpu/kernels/panel_gemm.h"

namespace tokenrouter {
namespace {

#include "libs/torch_engine/cpu/kernels/panel_gemm_256.inc"

// The compiler must not add in another order: it would need more registers than there are.
inline void KeepOrder(__m256i* sum) { asm("" : "+x"(*sum)); }

// Of four int8 weights or inputs, as 16 bits: the even ones and the odd ones. Products of bytes in
// pairs would exceed 16 bits.
struct EvenOdd {
  __m256i even, odd;
};

inline void Widen(const uint8_t* input, int64_t groups, int32_t* even, int32_t* odd) {
  constexpr uint32_t kEvenBytes = 0x00FF00FF;
  int64_t g = 0;
  for (; g + kLanes <= groups; g += kLanes) {
    const __m256i bytes = LoadInts(input + g * kInputGroup);
    const __m256i even_bytes = _mm256_and_si256(bytes, _mm256_set1_epi32(kEvenBytes));
    _mm256_store_si256(reinterpret_cast<__m256i*>(even + g), even_bytes);
    _mm256_store_si256(reinterpret_cast<__m256i*>(odd + g), _mm256_srli_epi16(bytes, 8));
  }
  for (; g < groups; ++g) {
    uint32_t four;
    __builtin_memcpy(&four, input + g * kInputGroup, sizeof(four));
    even[g] = static_cast<int32_t>(four & kEvenBytes);
    odd[g] = static_cast<int32_t>(four >> 8 & kEvenBytes);
  }
}

struct Avx2Dot {
  // Sums of 16 bits, two per output: each gets half the products of a block.
  static_assert(kInt4Block / 2 * 255 * 8 <= 32768);
  static void Add(__m256i* sum, __m256i inputs, __m256i weights) {
    *sum = _mm256_add_epi16(*sum, _mm256_maddubs_epi16(inputs, weights));
    KeepOrder(sum);
  }
  static __m256i Total(__m256i sum) { return _mm256_madd_epi16(sum, _mm256_set1_epi16(1)); }

  using Int8Weights = EvenOdd;
  static Int8Weights Int8WeightsOf(__m256i bytes) {
    return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
  }

  template <int kTile>
  struct Int8Inputs {
    alignas(32) int32_t even[kTile][kChunkGroups];
    alignas(32) int32_t odd[kTile][kChunkGroups];

    void Load(const uint8_t* input, int64_t stride, int64_t groups) {
      for (int r = 0; r < kTile; ++r) Widen(input + r * stride, groups, even[r], odd[r]);
    }
    template <int kPass>
    void Add(int r, int64_t g, const EvenOdd* weights, __m256i* sums) const {
      const __m256i first = _mm256_set1_epi32(even[r][g]), second = _mm256_set1_epi32(odd[r][g]);
      for (int v = 0; v < kPass; ++v) {
        sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(first, weights[v].even));
        KeepOrder(&sums[v]);
        sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(second, weights[v].odd));
        KeepOrder(&sums[v]);
      }
    }
  };
};

}  // namespace

const PanelGemm& Avx2PanelGemm() {
  static const PanelGemm gemm = {
      .name = "avx2", .int8 = Panel<Int8Kernel<Avx2Dot>>, .int4 = Panel<Int4Kernel<Avx2Dot>>};
  return gemm;
}

}  // namespace tokenrouter
