// StopMatcher finds the first stop string in a text that comes in chunks, and holds back only what
// could be the beginning of one. The first is the one that is complete first; of several complete
// at the same byte, the longest. The result does not depend on how the text was cut into chunks.
// Ownership: owns copies of the stop strings.
// Threads: one stream, one caller at a time.
// Units: bytes. Without stop strings nothing is held and
// nothing matches. Held back is at most the longest stop string less one byte. Time is linear in
// the text times the number of stop strings.
// Errors: Create: INVALID_ARGUMENT for an empty stop string, too many or too long ones.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopStringBytes = 1024;

class StopMatcher {
 public:
  // Without stop strings.
  StopMatcher() = default;
  static absl::StatusOr<StopMatcher> Create(std::vector<std::string> stops);

  // Returns the text that may be emitted now. The stop string itself is never emitted; after a
  // match everything is ignored.
  std::string Push(std::string_view chunk);
  // The end of the text: returns the held text, which can no longer begin a stop string.
  std::string Flush();
  bool matched() const { return matched_; }
  size_t held_bytes() const { return held_.size(); }

 private:
  struct Stop {
    std::string text;
    std::vector<size_t> borders;  // Knuth-Morris-Pratt: longest proper border of each beginning.
    size_t matched = 0;           // How much of the stop string the text ends with.
  };

  explicit StopMatcher(std::vector<Stop> stops) : stops_(std::move(stops)) {}

  static Stop Prepare(std::string text);
  static bool Advance(Stop& stop, char byte);
  // Feeds one byte to every stop string; the size of the longest that it completes, or 0.
  size_t Feed(char byte);
  size_t LongestBeginning() const;
  // Removes that many bytes from the front of the held text.
  std::string Release(size_t bytes);

  std::vector<Stop> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace tokenrouter
