// Compiled for AVX-VNNI: only UsablePanelGemms() may lead here. Everything but the table is in an
// unnamed namespace and no inline function of another header is called.
#include <immintrin.h>

#include "libs/torch_engine/cpu/kernels/panel_gemm.h"

namespace tokenrouter {
namespace {

#include "libs/torch_engine/cpu/kernels/panel_gemm_avxvnni.inc"

}  // namespace

const PanelGemm& AvxVnniPanelGemm() {
  static const PanelGemm gemm = {
      .name = "avxvnni", .int8 = Panel<Int8Kernel<ByteDot>>, .int4 = Panel<Int4Kernel<ByteDot>>};
  return gemm;
}

}  // namespace tokenrouter
