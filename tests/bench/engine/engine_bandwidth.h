// The rate at which several threads together read a buffer far larger than any cache, which limits
// a step that reads all weights. Ownership: owns the buffer. Threads: Pass starts its own and joins
// them. Units: bytes per second.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "tests/bench/engine/engine_options.h"

namespace tokenrouter {

class BandwidthMeter {
 public:
  // RESOURCE_EXHAUSTED when the buffer does not fit.
  static absl::StatusOr<std::unique_ptr<BandwidthMeter>> Create(int threads);
  ~BandwidthMeter();
  // Reads the buffer a few times; the best of these.
  double Pass();
  // The best of all passes, since other processes only lower it. REQUIRES: Pass.
  double best() const { return best_; }

 private:
  BandwidthMeter(void* memory, int threads) : memory_(memory), threads_(threads) {}

  void* const memory_;
  const int threads_;
  double best_ = 0;
};

absl::Status RunBandwidthPart(const EngineBenchOptions& options);

}  // namespace tokenrouter
