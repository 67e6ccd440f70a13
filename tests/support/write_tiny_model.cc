// write_tiny_model PATH FAMILY SEED SIZE [FORMAT]: writes a tiny model for scripts and the
// launcher. FAMILY is one of tiny_family.h (llama, qwen2, ...), SIZE small|large, FORMAT folder-f32
// (default), folder-bf16, gguf-f32 or gguf-f16. Exit code 2 for arguments it does not know, 1 when
// writing fails.
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "absl/strings/str_join.h"
#include "tests/support/tiny_family.h"
#include "tests/support/tiny_model.h"

namespace {

int Usage() {
  std::cerr << "usage: write_tiny_model PATH " << absl::StrJoin(tokenrouter::TinyFamilies(), "|")
            << " SEED small|large "
            << "[folder-f32|folder-bf16|gguf-f32|gguf-f16]\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  using tokenrouter::TinyFormat;
  const std::map<std::string, TinyFormat> formats = {{"folder-f32", TinyFormat::kFolderF32},
                                                     {"folder-bf16", TinyFormat::kFolderBf16},
                                                     {"gguf-f32", TinyFormat::kGgufF32},
                                                     {"gguf-f16", TinyFormat::kGgufF16}};
  if (argc != 5 && argc != 6) return Usage();
  char* end = nullptr;
  const uint64_t seed = std::strtoull(argv[3], &end, 10);
  const auto spec = tokenrouter::TinyFamily(argv[2], argv[4], seed);
  const auto format = formats.find(argc == 6 ? argv[5] : "folder-f32");
  if (!spec.ok() || format == formats.end() || *end != '\0') return Usage();
  const absl::Status status = tokenrouter::WriteTinyModel(*spec, format->second, argv[1]);
  if (status.ok()) return 0;
  std::cerr << status.ToString() << "\n";
  return 1;
}
