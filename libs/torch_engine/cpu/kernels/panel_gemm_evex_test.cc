// The kernels of panel_gemm_avxvnni.cc in the encoding of AVX-512 (EVEX), so that machines with
// AVX-512 VNNI and without AVX-VNNI test their logic. Only panel_gemm_test.cc leads here.
#include <immintrin.h>

#include "libs/torch_engine/cpu/kernels/panel_gemm.h"

namespace tokenrouter {
namespace {

#include "libs/torch_engine/cpu/kernels/panel_gemm_avxvnni.inc"

}  // namespace

const PanelGemm& EvexPanelGemm() {
  static const PanelGemm gemm = {
      .name = "evex", .int8 = Panel<Int8Kernel<ByteDot>>, .int4 = Panel<Int4Kernel<ByteDot>>};
  return gemm;
}

}  // namespace tokenrouter
