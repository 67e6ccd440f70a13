#include "libs/timing/jitter.h"

namespace tokenrouter {
namespace {

// FNV-1a, then the finalizer of SplitMix64: neighbours in name or number draw far apart.
constexpr uint64_t kFnvOffset = 14695981039346656037u;
constexpr uint64_t kFnvPrime = 1099511628211u;

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

double Jitter(std::string_view name, uint64_t number) {
  uint64_t hash = kFnvOffset;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  const uint64_t bits = Mix(hash + 0x9e3779b97f4a7c15u * (number + 1));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace tokenrouter
