// Runs a fuzz target over its corpus without a fuzzer, so that the corpus is a plain test with any
// compiler: every file of the folders given, then kVariants seeded changes of each. Each file is
// named before it runs, so the last line of a crash says which one it was. Exit code 1 when there
// is no file, 2 when no folder was given.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kVariants = 200;
constexpr int kMaxChangedBytes = 4;

uint64_t NextRandom(uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// A few bytes replaced, and in every fourth variant the end cut off.
std::vector<uint8_t> Variant(const std::vector<uint8_t>& original, uint64_t& random) {
  std::vector<uint8_t> bytes = original;
  if (bytes.empty()) return bytes;
  const auto changes = 1 + NextRandom(random) % kMaxChangedBytes;
  for (uint64_t i = 0; i < changes; ++i) {
    bytes[NextRandom(random) % bytes.size()] = static_cast<uint8_t>(NextRandom(random));
  }
  if (NextRandom(random) % 4 == 0) bytes.resize(NextRandom(random) % bytes.size());
  return bytes;
}

void Replay(const std::filesystem::path& path) {
  std::cout << path.string() << std::endl;
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  uint64_t random = bytes.size();
  for (int i = 0; i < kVariants; ++i) {
    const std::vector<uint8_t> variant = Variant(bytes, random);
    LLVMFuzzerTestOneInput(variant.data(), variant.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " CORPUS_FOLDER...\n";
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(argv[i], error)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const auto& path : files) Replay(path);
  std::cout << files.size() << " files, " << files.size() * kVariants << " variants\n";
  return files.empty() ? 1 : 0;
}
