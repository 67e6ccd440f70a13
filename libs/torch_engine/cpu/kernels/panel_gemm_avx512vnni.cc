// Compiled for AVX-512 VNNI: only UsablePanelGemm may lead here. Everything but the table is in an
// unnamed namespace and no inline function of another header is called.
#include <immintrin.h>

#include "libs/torch_engine/cpu/kernels/panel_gemm.h"

namespace tokenrouter {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kPanelOutputs / kLanes;
// Rows that share the loads of a panel: their sums and the weights fit into the registers.
constexpr int kTileRows = 8;

#include "libs/torch_engine/cpu/kernels/panel_gemm_rows.inc"

// A full tile of int8 multiplies for as long as it reads. Weights that are prefetched only into the
// second-level cache do not wait for one of the few miss buffers of the first-level cache. Fewer
// rows need them sooner, and int4 has half as many.
constexpr int64_t kFarPrefetchBytes = 8192;

template <int64_t kBytes>
inline void PrefetchFar(const int8_t* weights) {
  for (int64_t i = 0; i < kBytes; i += kCacheLine) {
    _mm_prefetch(reinterpret_cast<const char*>(weights) + kFarPrefetchBytes + i, _MM_HINT_T1);
  }
}

// Four inputs of a row, for every output.
inline __m512i FourInputs(const uint8_t* input) {
  int32_t four;
  __builtin_memcpy(&four, input, sizeof(four));
  return _mm512_set1_epi32(four);
}

// Outputs of vector `v` that exist.
inline __mmask16 OutputMask(const PanelItem& item, int v) {
  const int64_t left = item.outputs - v * kLanes;
  if (left <= 0) return 0;
  return static_cast<__mmask16>(left >= kLanes ? 0xffffu : (1u << left) - 1);
}

// kTile rows from `row` on.
template <int kTile>
void Int8Tile(const PanelItem& item, int64_t row) {
  __m512i sums[kTile][kVectors];
  const uint8_t* inputs[kTile];
  for (int r = 0; r < kTile; ++r) {
    inputs[r] = item.input + (row + r) * item.inputs;
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_si512();
  }
  const auto* const head = reinterpret_cast<const Int8PanelHead*>(item.panel);
  const auto* weights = reinterpret_cast<const int8_t*>(head + 1);
  for (int64_t k = 0; k < item.inputs; k += kInputGroup) {
    __m512i group[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      group[v] = _mm512_loadu_si512(weights + v * kLanes * kInputGroup);
    }
    if constexpr (kTile == kTileRows) {
      PrefetchFar<kPanelOutputs * kInputGroup>(weights);
    } else if constexpr (kTile > 1) {
      Prefetch<kPanelOutputs * kInputGroup>(weights);
    }
    weights += kPanelOutputs * kInputGroup;
    for (int r = 0; r < kTile; ++r) {
      const __m512i input = FourInputs(inputs[r] + k);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], input, group[v]);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const __m512i weight_sums = _mm512_loadu_si512(head->sums + v * kLanes);
    const __m512 weight_scales = _mm512_loadu_ps(head->scales + v * kLanes);
    const __m512 bias = _mm512_loadu_ps(item.bias + v * kLanes);
    for (int r = 0; r < kTile; ++r) {
      const RowQuantization& quantization = item.quantization[row + r];
      const __m512i zero = _mm512_set1_epi32(quantization.zero_point + 128);
      const __m512i exact = _mm512_sub_epi32(sums[r][v], _mm512_mullo_epi32(weight_sums, zero));
      const __m512 scale = _mm512_mul_ps(weight_scales, _mm512_set1_ps(quantization.scale));
      const __m512 result = _mm512_fmadd_ps(_mm512_cvtepi32_ps(exact), scale, bias);
      _mm512_mask_storeu_ps(item.output + (row + r) * item.output_stride + v * kLanes,
                            OutputMask(item, v), result);
    }
  }
}

inline __m512 Int4Scales(const Int4PanelBlock& block, int v) {
  const auto* const scales = reinterpret_cast<const __m256i*>(block.scales + v * kLanes);
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(scales));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

// Adds a block to the totals of kTile rows.
template <int kTile>
inline void Int4BlockTile(const Int4PanelBlock& block, const uint8_t* const (&inputs)[kTile],
                          int64_t first_input, __m512 (&totals)[kTile][kVectors]) {
  if constexpr (kTile > 1) Prefetch<sizeof(Int4PanelBlock)>(&block);
  const __m512i upper = _mm512_set1_epi8(static_cast<char>(0xF0));
  __m512i sums[kTile][kVectors];
  for (auto& row : sums) {
    for (auto& sum : row) sum = _mm512_setzero_si512();
  }
  for (int64_t p = 0; p < kInt4Block / (2 * kInputGroup); ++p) {
    __m512i low[kVectors], high[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const __m512i pairs = _mm512_loadu_si512(block.pairs[p][v * kLanes]);
      low[v] = _mm512_and_si512(_mm512_slli_epi16(pairs, 4), upper);
      high[v] = _mm512_and_si512(pairs, upper);
    }
    for (int r = 0; r < kTile; ++r) {
      const uint8_t* const input = inputs[r] + first_input + p * 2 * kInputGroup;
      const __m512i first = FourInputs(input), second = FourInputs(input + kInputGroup);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], first, low[v]);
        sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], second, high[v]);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const __m512 scales = Int4Scales(block, v);
    for (int r = 0; r < kTile; ++r) {
      totals[r][v] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][v]), scales, totals[r][v]);
    }
  }
}

template <int kTile>
void Int4Tile(const PanelItem& item, int64_t row) {
  __m512 totals[kTile][kVectors];
  const uint8_t* inputs[kTile];
  for (int r = 0; r < kTile; ++r) {
    inputs[r] = item.input + (row + r) * item.inputs;
    for (int v = 0; v < kVectors; ++v) totals[r][v] = _mm512_setzero_ps();
  }
  const auto* const head = reinterpret_cast<const Int4PanelHead*>(item.panel);
  const auto* block = reinterpret_cast<const Int4PanelBlock*>(head + 1);
  for (int64_t k = 0; k < item.inputs; k += kInt4Block) {
    Int4BlockTile<kTile>(*block++, inputs, k, totals);
  }
  for (int v = 0; v < kVectors; ++v) {
    const __m512 weight_sums = _mm512_loadu_ps(head->sums + v * kLanes);
    const __m512 bias = _mm512_loadu_ps(item.bias + v * kLanes);
    for (int r = 0; r < kTile; ++r) {
      const RowQuantization& quantization = item.quantization[row + r];
      const __m512 zero = _mm512_set1_ps(static_cast<float>(quantization.zero_point + 128));
      const __m512 total = _mm512_fnmadd_ps(zero, weight_sums, totals[r][v]);
      const __m512 result = _mm512_fmadd_ps(total, _mm512_set1_ps(quantization.scale), bias);
      _mm512_mask_storeu_ps(item.output + (row + r) * item.output_stride + v * kLanes,
                            OutputMask(item, v), result);
    }
  }
}

struct Int8Kernel {
  static constexpr int kMaxTile = kTileRows;
  template <int kTile>
  static void Tile(const PanelItem& item, int64_t row) {
    Int8Tile<kTile>(item, row);
  }
};

struct Int4Kernel {
  static constexpr int kMaxTile = kTileRows;
  template <int kTile>
  static void Tile(const PanelItem& item, int64_t row) {
    Int4Tile<kTile>(item, row);
  }
};

}  // namespace

const PanelGemm& Avx512VnniPanelGemm() {
  static const PanelGemm gemm = {
      .name = "avx512vnni", .int8 = Panel<Int8Kernel>, .int4 = Panel<Int4Kernel>};
  return gemm;
}

}  // namespace tokenrouter
