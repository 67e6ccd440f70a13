#include "libs/weights/file/content_hash.h"

#include "absl/strings/str_cat.h"

namespace tokenrouter {

void ContentHash::AddRaw(std::span<const std::byte> bytes) {
  uint64_t state = state_;
  for (const std::byte byte : bytes) {
    state = (state ^ static_cast<uint64_t>(byte)) * 0x100000001B3;
  }
  state_ = state;
}

void ContentHash::AddSize(size_t size) {
  uint64_t value = size;
  for (int i = 0; i < 8; ++i, value >>= 8) {
    const std::byte byte{static_cast<unsigned char>(value & 0xFF)};
    AddRaw(std::span(&byte, 1));
  }
}

void ContentHash::Add(std::span<const std::byte> bytes) {
  AddSize(bytes.size());
  AddRaw(bytes);
}

void ContentHash::AddSamples(std::span<const std::byte> bytes) {
  if (bytes.size() <= kContentHashSamples * kContentHashSampleBytes) return Add(bytes);
  AddSize(bytes.size());
  const size_t last_start = bytes.size() - kContentHashSampleBytes;
  for (size_t i = 0; i < kContentHashSamples; ++i) {
    const size_t start = last_start / (kContentHashSamples - 1) * i;
    const bool is_last = i + 1 == kContentHashSamples;
    AddRaw(bytes.subspan(is_last ? last_start : start, kContentHashSampleBytes));
  }
}

std::string ContentHash::Hex() const { return absl::StrCat(absl::Hex(state_, absl::kZeroPad16)); }

}  // namespace tokenrouter
