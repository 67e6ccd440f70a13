#include "libs/torch_engine/cpu/kernels/panel_gemm.h"

#include <cpuid.h>

#include <cmath>
#include <vector>

namespace tokenrouter {
namespace {

float FromBfloat16(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  __builtin_memcpy(&value, &wide, sizeof(value));
  return value;
}

void ScalarInt8(const PanelItem& item) {
  const auto* const head = reinterpret_cast<const Int8PanelHead*>(item.panel);
  const auto* const weights = reinterpret_cast<const int8_t*>(head + 1);
  for (int64_t r = 0; r < item.rows; ++r) {
    const RowQuantization& quantization = item.quantization[r];
    for (int64_t o = 0; o < item.outputs; ++o) {
      int32_t sum = 0;
      for (int64_t k = 0; k < item.inputs; ++k) {
        const int64_t group = k / kInputGroup * kPanelOutputs + o;
        sum += item.input[r * item.inputs + k] * weights[group * kInputGroup + k % kInputGroup];
      }
      const int32_t exact = sum - head->sums[o] * (quantization.zero_point + 128);
      item.output[r * item.output_stride + o] =
          std::fma(static_cast<float>(exact), head->scales[o] * quantization.scale, item.bias[o]);
    }
  }
}

// The sum of a block, sixteen times what its weights say.
int32_t BlockSum(const Int4PanelBlock& block, const uint8_t* input, int64_t o) {
  int32_t sum = 0;
  for (int64_t k = 0; k < kInt4Block; ++k) {
    const uint8_t pair = block.pairs[k / (2 * kInputGroup)][o][k % kInputGroup];
    const int high = k / kInputGroup % 2;
    const auto times16 = static_cast<int8_t>(high == 1 ? pair & 0xF0 : pair << 4);
    sum += input[k] * times16;
  }
  return sum;
}

void ScalarInt4(const PanelItem& item) {
  const auto* const head = reinterpret_cast<const Int4PanelHead*>(item.panel);
  const auto* const blocks = reinterpret_cast<const Int4PanelBlock*>(head + 1);
  for (int64_t r = 0; r < item.rows; ++r) {
    const RowQuantization& quantization = item.quantization[r];
    const auto zero = static_cast<float>(quantization.zero_point + 128);
    for (int64_t o = 0; o < item.outputs; ++o) {
      float total = 0.0f;
      for (int64_t b = 0; b < item.inputs / kInt4Block; ++b) {
        const int32_t sum = BlockSum(blocks[b], item.input + r * item.inputs + b * kInt4Block, o);
        total = std::fma(static_cast<float>(sum), FromBfloat16(blocks[b].scales[o]), total);
      }
      total = std::fma(-zero, head->sums[o], total);
      item.output[r * item.output_stride + o] = std::fma(total, quantization.scale, item.bias[o]);
    }
  }
}

// Clang 14 does not know the name for __builtin_cpu_supports.
bool HasAvxVnni() {
  constexpr unsigned kFeatures = 7, kSubleaf = 1, kAvxVnniBit = 1u << 4;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(kFeatures, kSubleaf, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax & kAvxVnniBit) != 0;
}

}  // namespace

const PanelGemm& ScalarPanelGemm() {
  static const PanelGemm gemm = {.name = "scalar", .int8 = ScalarInt8, .int4 = ScalarInt4};
  return gemm;
}

std::span<const PanelGemm* const> UsablePanelGemms() {
  static const std::vector<const PanelGemm*> usable = [] {
    std::vector<const PanelGemm*> tables;
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vnni")) {
      tables.push_back(&Avx512VnniPanelGemm());
    }
    if (avx2 && HasAvxVnni()) tables.push_back(&AvxVnniPanelGemm());
    if (avx2) tables.push_back(&Avx2PanelGemm());
    return tables;
  }();
  return usable;
}

}  // namespace tokenrouter
