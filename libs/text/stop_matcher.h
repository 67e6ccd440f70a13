// StopMatcher finds the first stop string in a text that comes in chunks, and holds back only what
// could be the beginning of one. The first is the one that is complete first; of several complete
// at the same byte, the longest. The result does not depend on how the text was cut into chunks.
// Ownership: owns copies of the stop strings.
// Threads: one stream, one caller at a time.
// Units: offsets in bytes from the beginning of the text. Without stop strings nothing is held and
// nothing matches. Held back is at most the longest stop string less one byte. Time is linear in
// the text times the number of stop strings.
// Errors: Create: INVALID_ARGUMENT for an empty stop string, too many or too long ones.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

inline constexpr size_t kMaxStopStrings = 64;
inline constexpr size_t kMaxStopStringBytes = 4096;

struct StopMatch {
  size_t stop_index = 0;  // In the order given to Create.
  size_t begin = 0;       // The stop string is the bytes begin up to end of the text.
  size_t end = 0;
  size_t text_end = 0;      // Where the text given out ends: `begin`, or `end` with include_stop.
  int64_t text_tokens = 0;  // The fewest tokens whose text reaches `text_end`.
  int64_t tokens = 0;       // The tokens up to the one that completed the stop string.
};

class StopMatcher {
 public:
  static absl::StatusOr<StopMatcher> Create(std::vector<std::string> stops,
                                            bool include_stop = false);

  // Takes the text that `tokens` tokens made in all (so `tokens` never falls) and returns what may
  // be given out now. After a match everything is ignored.
  std::string Push(std::string_view chunk, int64_t tokens = 0);
  // The end of the text: what is held back, which now is the beginning of no stop string.
  std::string Flush();
  const std::optional<StopMatch>& match() const { return match_; }
  size_t held_bytes() const { return held_.size(); }

 private:
  struct Stop {
    std::string text;
    std::vector<size_t> borders;  // Knuth-Morris-Pratt: longest proper border of each beginning.
    size_t matched = 0;           // How much of the stop string the text ends with.
  };
  struct TokenMark {
    size_t end;      // This much text...
    int64_t tokens;  // ...took this many tokens at least.
  };

  StopMatcher(std::vector<Stop> stops, bool include_stop)
      : stops_(std::move(stops)), include_stop_(include_stop) {}

  static Stop Prepare(std::string text);
  static bool Advance(Stop& stop, char byte);
  // Feeds one byte to every stop string; sets match_ when one is complete.
  void Feed(char byte, int64_t tokens);
  int64_t TokensFor(size_t end, int64_t latest) const;
  size_t LongestBeginning() const;
  std::string Release(size_t bytes);

  std::vector<Stop> stops_;
  const bool include_stop_;
  std::string held_;
  size_t released_ = 0;                  // Offset of the first held byte.
  size_t seen_ = 0;                      // Bytes of text fed.
  std::deque<TokenMark> marks_{{0, 0}};  // Ends from `released_` on, ascending.
  std::optional<StopMatch> match_;
};

}  // namespace tokenrouter
