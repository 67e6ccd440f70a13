// SHA-256 of memory; of much memory in pieces, so that threads can share the work.
// Ownership: nothing is kept. Threads: pure functions; `parallel` may call from many at once.
// Units: bytes. Stable across machines and builds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace tokenrouter {

using Digest = std::array<std::byte, 32>;
// Calls item(i) for every i in [0, items), in any order and from any thread, and returns after all.
using ParallelFor =
    std::function<void(int64_t items, const std::function<void(int64_t item)>& item)>;
// Bytes done so far and in all; called on the calling thread. May be empty.
using DigestProgress = std::function<void(int64_t done, int64_t total)>;

inline constexpr size_t kDigestPiece = size_t{4} << 20;

Digest Sha256(std::span<const std::byte> bytes);
// The digest of the digests of all pieces of kDigestPiece bytes; the last one may be shorter.
Digest DigestOfPieces(std::span<const std::byte> bytes, const ParallelFor& parallel,
                      const DigestProgress& progress);
// 64 hexadecimal digits.
std::string HexOf(const Digest& digest);

}  // namespace tokenrouter
