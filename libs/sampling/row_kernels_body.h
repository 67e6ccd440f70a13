// The row kernels, written once on compiler vectors of a width that the including file chooses.
// Only row_kernels_{sse2,avx2,avx512}.cc include it. Nothing here may call an inline function of
// another header: the linker could keep the copy compiled for the larger instruction set.
#pragma once

#include <cstdint>

#include "libs/sampling/row_kernels.h"

namespace tokenrouter {
namespace {

// `Isa` gives the vectors F of float, I of int32_t and U of uint64_t, and the one operation that
// they lack: the 64-bit products of the low halves of 64-bit lanes.
template <typename Isa>
class RowKernelsOf {
 public:
  static void BlockMaxima(const float* logits, int64_t ids, float* maxima) {
    int64_t block = 0;
    for (; (block + 1) * kRowBlock <= ids; ++block) {
      maxima[block] = BlockMax(logits + block * kRowBlock);
    }
    if (block * kRowBlock == ids) return;
    float tail[kRowBlock];
    CopyTail(logits + block * kRowBlock, ids - block * kRowBlock, tail);
    maxima[block] = BlockMax(tail);
  }

  static ExpSums Sums(const float* logits, int64_t ids, float shift, float scale) {
    ExpSums total;
    int64_t block = 0;
    const int64_t whole = ids / kRowBlock;
    while (block < whole) {
      const int64_t end = block + kBlocksPerSum < whole ? block + kBlocksPerSum : whole;
      F sum[kChains] = {}, weighted[kChains] = {};
      for (; block < end; ++block) {
        AddBlock(logits + block * kRowBlock, shift, scale, sum, weighted);
      }
      AddLanes(sum, weighted, &total);
    }
    if (whole * kRowBlock < ids) {
      float tail[kRowBlock];
      CopyTail(logits + whole * kRowBlock, ids - whole * kRowBlock, tail);
      F sum[kChains] = {}, weighted[kChains] = {};
      AddBlock(tail, shift, scale, sum, weighted);
      AddLanes(sum, weighted, &total);
    }
    return total;
  }

  static uint64_t NoiseCandidates(const float* logits, uint32_t block, const NoiseKey& key,
                                  const NoiseBound& bound) {
    I hits[kVectors];
    for (int part = 0; part < kVectors / 2; ++part) {
      U even, odd;
      NoiseWords(block * (kRowBlock / 4) + part * kCounters, key, &even, &odd);
      hits[2 * part] = Passes(Load(logits + 2 * part * kLanes), even, bound);
      hits[2 * part + 1] = Passes(Load(logits + (2 * part + 1) * kLanes), odd, bound);
    }
    I any = hits[0];
    for (int i = 1; i < kVectors; ++i) any |= hits[i];
    uint64_t seen = 0;
    for (int i = 0; i < kCounters; ++i) seen |= ((U)any)[i];
    if (seen == 0) return 0;
    uint64_t mask = 0;
    for (int i = 0; i < kRowBlock; ++i) {
      mask |= static_cast<uint64_t>(hits[i / kLanes][i % kLanes] & 1) << i;
    }
    return mask;
  }

 private:
  using F = typename Isa::F;
  using I = typename Isa::I;
  using U = typename Isa::U;
  static constexpr int kLanes = sizeof(F) / 4;     // Floats per vector.
  static constexpr int kCounters = sizeof(F) / 8;  // Philox blocks per vector.
  static constexpr int kVectors = kRowBlock / kLanes;
  static constexpr int kChains = 4;  // Independent sums, to hide the latency of addition.
  static constexpr int64_t kBlocksPerSum = 64;  // Float sums are that short, then double.
  static_assert(kVectors % kChains == 0);

  static F Load(const float* from) {
    F value;
    __builtin_memcpy(&value, from, sizeof(value));
    return value;
  }
  static F Fill(float value) { return F{} + value; }
  static F Max(F a, F b) { return a > b ? a : b; }  // b where a is NaN.

  static void CopyTail(const float* logits, int64_t ids, float* tail) {
    for (int64_t i = 0; i < kRowBlock; ++i) tail[i] = i < ids ? logits[i] : -__builtin_inff();
  }

  static float BlockMax(const float* logits) {
    F best = Fill(-__builtin_inff());
    for (int i = 0; i < kVectors; ++i) best = Max(Load(logits + i * kLanes), best);
    float result = best[0];
    for (int i = 1; i < kLanes; ++i) result = best[i] > result ? best[i] : result;
    return result;
  }

  // Cephes' expf: relative error about 1e-7. Arguments below -87 count as -87, NaN stays.
  static F Exp(F x) {
    const F shifter = Fill(12582912.0f);  // 1.5 * 2^23: rounds to an integer in the low bits.
    const F rounded = x * 1.44269504088896341f + shifter;
    const I exponent = (I)rounded - (I)shifter;
    const F n = rounded - shifter;
    const F f = x - n * 0.693359375f - n * -2.12194440e-4f;
    F y = f * 1.9875691500e-4f + 1.3981999507e-3f;
    y = y * f + 8.3334519073e-3f;
    y = y * f + 4.1665795894e-2f;
    y = y * f + 1.6666665459e-1f;
    y = y * f + 5.0000001201e-1f;
    y = y * f * f + f + 1.0f;
    return y * (F)((exponent + 127) << 23);
  }

  static F Exponent(F x, float shift, float scale) {
    return Max(Fill(-87.0f), (x - shift) * scale);
  }

  static void AddBlock(const float* logits, float shift, float scale, F* sum, F* weighted) {
    for (int i = 0; i < kVectors; ++i) {
      const F t = Exponent(Load(logits + i * kLanes), shift, scale);
      const F e = Exp(t);
      sum[i % kChains] += e;
      weighted[i % kChains] += e * t;
    }
  }

  static void AddLanes(const F* sum, const F* weighted, ExpSums* total) {
    const F s = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    const F w = (weighted[0] + weighted[1]) + (weighted[2] + weighted[3]);
    for (int i = 0; i < kLanes; ++i) {
      total->sum += s[i];
      total->weighted += w[i];
    }
  }

  // The words of kCounters consecutive Philox4x32-10 blocks, in the order of their ids: the first
  // half of them in `first`. State words live in the low halves of 64-bit lanes; what the upper
  // halves hold is never read.
  static void NoiseWords(uint32_t counter, const NoiseKey& key, U* first, U* second) {
    U c0 = U{} + key.position, c1 = U{} + key.choice, c2 = U{} + key.purpose, c3;
    for (int lane = 0; lane < kCounters; ++lane) {
      // Interleaving below leaves even lanes in front of odd ones.
      c3[lane] = counter + lane / 2 + (lane % 2) * (kCounters / 2);
    }
    uint32_t k0 = key.seed_low, k1 = key.seed_high;
    for (int round = 0; round < 10; ++round) {
      const U p0 = Isa::MultiplyLow(c0, U{} + 0xD2511F53u);
      const U p1 = Isa::MultiplyLow(c2, U{} + 0xCD9E8D57u);
      c0 = (p1 >> 32) ^ c1 ^ k0;
      c2 = (p0 >> 32) ^ c3 ^ k1;
      c1 = p1;
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const U low = (c0 & 0xFFFFFFFFu) | (c1 << 32);
    const U high = (c2 & 0xFFFFFFFFu) | (c3 << 32);
    for (int lane = 0; lane < kCounters; lane += 2) {
      (*first)[lane] = low[lane];
      (*first)[lane + 1] = high[lane];
      (*second)[lane] = low[lane + 1];
      (*second)[lane + 1] = high[lane + 1];
    }
  }

  // 1 - u = (2^32 - bits - 0.5) * 2^-32 is at least (~bits >> 1) * 2^-31, which fits an int32.
  static I Passes(F x, U words, const NoiseBound& bound) {
    const F e = Exp(Exponent(x, bound.shift, bound.scale));
    const I half = (I)(~words >> 1) & 0x7FFFFFFF;
    const F least = __builtin_convertvector(half, F);
    return (least <= e * (bound.limit * 0x1p31f)) & (x >= bound.cut);
  }
};

template <typename Isa>
constexpr RowKernels MakeRowKernels(const char* name) {
  using Kernels = RowKernelsOf<Isa>;
  return {name, &Kernels::BlockMaxima, &Kernels::Sums, &Kernels::NoiseCandidates};
}

}  // namespace
}  // namespace tokenrouter
