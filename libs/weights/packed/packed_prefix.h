// The first bytes of a packed file (packed_file.h), as its reader and its writer see them.
// Units: bytes, little-endian.
#pragma once

#include <cstdint>

#include "libs/weights/file/digest.h"
#include "libs/weights/packed/packed_file.h"

namespace tokenrouter {

// Ends the names of files that are not whole yet.
inline constexpr char kPackedTemporary[] = ".tmp";
// Changes with the layout: older files are then rebuilt.
inline constexpr char kPackedMagic[16] = {'t', 'o', 'k', 'e', 'n', 'r', 'o', 'u',
                                          't', 'e', 'r', '-', 'p', 'k', '1', '\n'};

struct PackedPrefix {
  char magic[16];
  uint64_t header_offset;  // The header reaches from here to the end of the file.
  uint64_t header_bytes;
  Digest header_digest;
};
static_assert(sizeof(PackedPrefix) == kPackedPrefixBytes);

}  // namespace tokenrouter
