// The dynamically quantized int8 linear layer of libtorch (`quantized::linear_dynamic`), of FBGEMM
// or of oneDNN, with weights of one scale per output. Its input has one scale for all rows, so it
// is no batch-invariant choice for an engine; it only measures what the machine can do.
// Ownership: owns the packed weights. Threads: libtorch's own, set for the whole process.
// Errors: UNIMPLEMENTED when this libtorch or processor cannot; the exceptions of libtorch end
// here.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

enum class TorchQuantizer { kFbgemm, kOneDnn };

class FbgemmLinear {
 public:
  // `weights`: {outputs, inputs}.
  static absl::StatusOr<std::unique_ptr<FbgemmLinear>> Pack(TorchQuantizer quantizer,
                                                            const std::vector<float>& weights,
                                                            int64_t outputs, int64_t inputs,
                                                            int threads);
  ~FbgemmLinear();
  // `input`: {rows, inputs}. The result is thrown away.
  absl::Status Run(const float* input, int64_t rows);

 private:
  struct Packed;
  explicit FbgemmLinear(std::unique_ptr<Packed> packed);
  const std::unique_ptr<Packed> packed_;
};

}  // namespace tokenrouter
