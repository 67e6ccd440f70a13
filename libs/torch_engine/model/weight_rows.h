// How matrices reach a device: as rows of floats that are read when they are packed, so that no
// model is ever held in memory as floats.
// Ownership: a reader refers to its source, which must outlive the call it is passed to.
// Threads: a reader is called from many threads at once.
// Units: rows are output channels, a row has one float per input channel.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace tokenrouter {

// Fills `out` with weight rows [first, first + count).
using WeightRowReader = std::function<void(int64_t first, int64_t count, std::span<float> out)>;

struct WeightRows {
  std::string name;  // For messages: the tensor, or the first of several.
  int64_t inputs = 0;
  int64_t outputs = 0;
  WeightRowReader read;
  std::span<const float> bias;  // Empty or `outputs` values; copied.
};

}  // namespace tokenrouter
