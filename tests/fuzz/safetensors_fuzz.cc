// Any bytes as a safetensors file: opening must refuse or give tensors that can be read.
#include "libs/weights/file/dequantize.h"
#include "libs/weights/hugging_face/safetensors_file.h"

namespace {

constexpr int64_t kMaxColumns = 1 << 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file =
      tokenrouter::SafetensorsFile::Parse(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
  if (!file.ok()) return 0;
  for (const auto& [name, tensor] : (*file)->tensors()) {
    if (tensor.columns() > kMaxColumns) continue;
    std::vector<float> row(static_cast<size_t>(tensor.columns()));
    const auto row_bytes = static_cast<size_t>(tensor.row_bytes());
    tokenrouter::DequantizeRow(tensor.type, tensor.bytes.last(row_bytes), row);
  }
  return 0;
}
