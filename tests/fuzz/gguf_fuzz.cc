// Any bytes as a GGUF file: opening must refuse or give metadata and tensors that can be read.
#include "libs/weights/file/dequantize.h"
#include "libs/weights/gguf/gguf_description.h"
#include "libs/weights/gguf/gguf_file.h"

namespace {

constexpr int64_t kMaxColumns = 1 << 16;

void ReadEveryValue(const tokenrouter::GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    (void)file.GetString(key);
    (void)file.GetInt(key);
    (void)file.GetFloat(key);
    (void)file.GetBool(key);
    (void)file.GetInts(key);
    (void)file.GetFloats(key);
    if (const auto strings = file.GetStrings(key); strings.ok()) {
      for (const std::string_view text : *strings) (void)std::string(text);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = tokenrouter::GgufFile::Parse(std::as_bytes(std::span(data, size)), "fuzz.gguf");
  if (!file.ok()) return 0;
  ReadEveryValue(**file);
  for (const tokenrouter::TensorView& tensor : (*file)->tensors()) {
    if (tensor.columns() > kMaxColumns) continue;
    std::vector<float> row(static_cast<size_t>(tensor.columns()));
    const auto row_bytes = static_cast<size_t>(tensor.row_bytes());
    tokenrouter::DequantizeRow(tensor.type, tensor.bytes.last(row_bytes), row);
  }
  (void)tokenrouter::DescribeGguf(**file);
  return 0;
}
