// The inner loops over one row of logits, compiled once per instruction set and chosen at run time.
// Everything else of the sampler is written on them.
// Threads: pure functions; thread-safe. Results are deterministic within one process; between
// instruction sets the order of summation differs.
// Units: a row is cut into blocks of kRowBlock ids; the last one may be shorter. Logits may be
// -inf; NaN and +inf make the sums NaN and are found by that.
#pragma once

#include <cstdint>
#include <vector>

namespace tokenrouter {

// Ids per block: sixteen Philox blocks of four words each.
inline constexpr int64_t kRowBlock = 64;
inline constexpr int64_t RowBlocks(int64_t ids) { return (ids + kRowBlock - 1) / kRowBlock; }

// Of e = exp((x - shift) * scale).
struct ExpSums {
  double sum = 0.0;
  double weighted = 0.0;  // Of e * (x - shift) * scale.
};

// The fixed words of the Philox blocks of one key (libs/tokens/keyed_random.h).
struct NoiseKey {
  uint32_t seed_low = 0;
  uint32_t seed_high = 0;
  uint32_t position = 0;
  uint32_t choice = 0;
  uint32_t purpose = 0;
};

// Which ids of a block could beat the best score so far.
struct NoiseBound {
  float shift = 0.0f;  // Largest logit of the row.
  float scale = 1.0f;  // 1 / temperature.
  float cut = 0.0f;    // Ids with a smaller logit are out.
  // exp(shift * scale - best score) with a margin for rounding: an id can win only where
  // 1 - u <= exp((x - shift) * scale) * limit, because -ln(u) >= 1 - u.
  float limit = 0.0f;
};

struct RowKernels {
  const char* name;
  // maxima[b] = largest logit of block b; NaN is skipped.
  void (*block_maxima)(const float* logits, int64_t ids, float* maxima);
  ExpSums (*exp_sums)(const float* logits, int64_t ids, float shift, float scale);
  // Bit i: id block * kRowBlock + i passes the bound. A superset of the ids that beat the best
  // score. `logits` are the kRowBlock values of the block, padded with -inf.
  uint64_t (*noise_candidates)(const float* logits, uint32_t block, const NoiseKey& key,
                               const NoiseBound& bound);
};

// The fastest that this processor runs.
const RowKernels& BestRowKernels();
// All that this processor runs, for tests.
std::vector<const RowKernels*> SupportedRowKernels();

}  // namespace tokenrouter
