// ContentHash is a cheap 64-bit fingerprint of large files: small parts are hashed whole, large
// ones by size and evenly spaced samples. It distinguishes models; it is no protection against
// tampering. Ownership: keeps no reference. Threads: not thread-safe. Stable across machines and
// builds (FNV-1a, 64 bit).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tokenrouter {

inline constexpr size_t kContentHashSamples = 64;
inline constexpr size_t kContentHashSampleBytes = 4096;

class ContentHash {
 public:
  // Size and every byte.
  void Add(std::span<const std::byte> bytes);
  // Size and kContentHashSamples pieces of kContentHashSampleBytes, the first and the last among
  // them; every byte when there are fewer.
  void AddSamples(std::span<const std::byte> bytes);
  // Sixteen hexadecimal digits.
  std::string Hex() const;

 private:
  void AddRaw(std::span<const std::byte> bytes);
  void AddSize(size_t size);

  uint64_t state_ = 0xCBF29CE484222325;
};

}  // namespace tokenrouter
