#include "tests/bench/engine/engine_bandwidth.h"

#include <emmintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/status/status_macros.h"
#include "tests/bench/engine/engine_cell.h"

namespace tokenrouter {
namespace {

constexpr size_t kBytes = size_t{512} << 20;
constexpr int kReadingsPerPass = 4;
constexpr int kLoads = 8;  // Independent sums, so that loads never wait for an addition.
constexpr double kGiga = 1e9;

// Reads [from, from + count) and returns something that depends on all of it.
int ReadAll(const __m128i* from, size_t count) {
  __m128i sums[kLoads] = {};
  for (size_t i = 0; i + kLoads <= count; i += kLoads) {
    for (int k = 0; k < kLoads; ++k) {
      sums[k] = _mm_xor_si128(sums[k], _mm_load_si128(from + i + k));
    }
  }
  for (int k = 1; k < kLoads; ++k) sums[0] = _mm_xor_si128(sums[0], sums[k]);
  return _mm_cvtsi128_si32(sums[0]);
}

}  // namespace

absl::StatusOr<std::unique_ptr<BandwidthMeter>> BandwidthMeter::Create(int threads) {
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory to read: ", kBytes, " bytes"));
  }
  madvise(memory, kBytes, MADV_HUGEPAGE);  // Only about speed: a refusal changes little.
  std::memset(memory, 1, kBytes);
  return std::unique_ptr<BandwidthMeter>(new BandwidthMeter(memory, threads));
}

BandwidthMeter::~BandwidthMeter() { munmap(memory_, kBytes); }

double BandwidthMeter::Pass() {
  double best = 0;
  const auto* const values = static_cast<const __m128i*>(memory_);
  const size_t part = kBytes / sizeof(__m128i) / static_cast<size_t>(threads_);
  std::vector<int> sinks(static_cast<size_t>(threads_));
  for (int reading = 0; reading < kReadingsPerPass; ++reading) {
    const absl::Time start = absl::Now();
    std::vector<std::thread> readers;
    for (size_t i = 0; i < sinks.size(); ++i) {
      readers.emplace_back([&, i] { sinks[i] += ReadAll(values + i * part, part); });
    }
    for (std::thread& reader : readers) reader.join();
    best = std::max(best, kBytes / absl::ToDoubleSeconds(absl::Now() - start));
  }
  best_ = std::max(best_, best);
  return best;
}

absl::Status RunBandwidthPart(const EngineBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(const auto meter, BandwidthMeter::Create(options.threads));
  for (int round = 0; round < options.rounds; ++round) meter->Pass();
  PrintRow({{"bench", "engine"},
            {"part", "bandwidth"},
            {"threads", options.threads},
            {"read_gb_per_s", Rounded(meter->best() / kGiga)}});
  return absl::OkStatus();
}

}  // namespace tokenrouter
