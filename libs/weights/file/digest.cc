#include "libs/weights/file/digest.h"

#include <openssl/evp.h>

#include <algorithm>
#include <vector>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

// Pieces between two calls of progress.
constexpr int64_t kPiecesPerReport = 64;

}  // namespace

Digest Sha256(std::span<const std::byte> bytes) {
  Digest digest;
  unsigned int size = 0;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
                 EVP_sha256(), nullptr);
  TR_CHECK(ok == 1 && size == digest.size());
  return digest;
}

Digest DigestOfPieces(std::span<const std::byte> bytes, const ParallelFor& parallel,
                      const DigestProgress& progress) {
  const auto pieces = static_cast<int64_t>((bytes.size() + kDigestPiece - 1) / kDigestPiece);
  std::vector<Digest> digests(pieces);
  for (int64_t first = 0; first < pieces; first += kPiecesPerReport) {
    const int64_t count = std::min(kPiecesPerReport, pieces - first);
    parallel(count, [&](int64_t i) {
      const size_t at = static_cast<size_t>(first + i) * kDigestPiece;
      digests[first + i] = Sha256(bytes.subspan(at, std::min(kDigestPiece, bytes.size() - at)));
    });
    if (!progress) continue;
    const size_t done = static_cast<size_t>(first + count) * kDigestPiece;
    progress(static_cast<int64_t>(std::min(bytes.size(), done)),
             static_cast<int64_t>(bytes.size()));
  }
  return Sha256(std::as_bytes(std::span(digests)));
}

std::string HexOf(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::byte byte : digest) {
    hex += kDigits[static_cast<int>(byte) >> 4];
    hex += kDigits[static_cast<int>(byte) & 15];
  }
  return hex;
}

}  // namespace tokenrouter
