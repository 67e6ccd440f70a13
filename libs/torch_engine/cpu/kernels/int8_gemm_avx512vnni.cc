// Compiled for AVX-512 VNNI: only UsableInt8Gemm may lead here. Everything but the table is in an
// unnamed namespace and no inline function of another header is called.
#include <immintrin.h>

#include "libs/torch_engine/cpu/kernels/int8_gemm.h"

namespace tokenrouter {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kPanelOutputs / kLanes;
// Rows that share the loads of a panel: their sums and the weights fit into the registers.
constexpr int kMaxTile = 8;

// sums[r][v] = sum over inputs of input[r] * weights, for kTile rows.
template <int kTile>
inline void Accumulate(const Int8PanelItem& item, int64_t row, __m512i (&sums)[kTile][kVectors]) {
  const uint8_t* inputs[kTile];
  for (int r = 0; r < kTile; ++r) {
    inputs[r] = item.input + (row + r) * item.inputs;
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_si512();
  }
  const int8_t* weights = item.weights;
  for (int64_t k = 0; k < item.inputs; k += kInt8InputGroup) {
    __m512i group[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      group[v] = _mm512_loadu_si512(weights + v * kLanes * kInt8InputGroup);
    }
    weights += kPanelOutputs * kInt8InputGroup;
    for (int r = 0; r < kTile; ++r) {
      int32_t four;
      __builtin_memcpy(&four, inputs[r] + k, sizeof(four));
      const __m512i input = _mm512_set1_epi32(four);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], input, group[v]);
      }
    }
  }
}

template <int kTile>
void Tile(const Int8PanelItem& item, int64_t row) {
  __m512i sums[kTile][kVectors];
  Accumulate<kTile>(item, row, sums);
  for (int v = 0; v < kVectors; ++v) {
    const int64_t left = item.outputs - v * kLanes;
    if (left <= 0) break;
    const auto mask = static_cast<__mmask16>(left >= kLanes ? 0xffffu : (1u << left) - 1);
    const __m512i weight_sums = _mm512_loadu_si512(item.weight_sums + v * kLanes);
    const __m512 weight_scales = _mm512_loadu_ps(item.weight_scales + v * kLanes);
    const __m512 bias = _mm512_loadu_ps(item.bias + v * kLanes);
    for (int r = 0; r < kTile; ++r) {
      const RowQuantization& quantization = item.quantization[row + r];
      const __m512i zero = _mm512_set1_epi32(quantization.zero_point + 128);
      const __m512i exact = _mm512_sub_epi32(sums[r][v], _mm512_mullo_epi32(weight_sums, zero));
      const __m512 scale = _mm512_mul_ps(weight_scales, _mm512_set1_ps(quantization.scale));
      const __m512 result = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), scale, bias);
      _mm512_mask_storeu_ps(item.output + (row + r) * item.output_stride + v * kLanes, mask,
                            result);
    }
  }
}

void Panel(const Int8PanelItem& item) {
  int64_t row = 0;
  for (; row + kMaxTile <= item.rows; row += kMaxTile) Tile<kMaxTile>(item, row);
  switch (item.rows - row) {
    case 1:
      return Tile<1>(item, row);
    case 2:
      return Tile<2>(item, row);
    case 3:
      return Tile<3>(item, row);
    case 4:
      return Tile<4>(item, row);
    case 5:
      return Tile<5>(item, row);
    case 6:
      return Tile<6>(item, row);
    case 7:
      return Tile<7>(item, row);
    default:
      return;
  }
}

}  // namespace

const Int8Gemm& Avx512VnniGemm() {
  static const Int8Gemm gemm = {.name = "avx512vnni", .panel = Panel};
  return gemm;
}

}  // namespace tokenrouter
