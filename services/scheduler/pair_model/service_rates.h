// ServiceRates remembers how fast a pair committed tokens in either service mode, and how long one
// request waited for its next token while no prompt was prefilled, for each size of load: what a
// plan predicts leaves out lease changes and co-located load on the machine, and those cost the one
// mode more than the other. Loads are told apart by powers of two, so a load that comes back is
// served as experience has it from its first moment. Only the mode in force can be measured. What
// was measured is forgotten after a while, later each time, so a mode that once was slower is tried
// again, but ever more seldom. Threads: lives on the scheduler's loop. Units: tokens per second.
// Cost: O(1) per call.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "libs/batching_model/mode_controller.h"

namespace tokenrouter {

class ServiceRates {
 public:
  // Loads of about 2^i, i = 0 .. kSizes - 1 and all beyond.
  static constexpr int kSizes = 12;
  static int SizeOf(int32_t load);

  void Commit(int64_t tokens) { fresh_ += tokens; }
  // A request wrote its first token.
  void Begin() { ++fresh_begun_; }
  // As of the next Follow: so many of the live requests prefill their prompt, and the mean
  // answer is so long; 0: not known.
  void Expect(int32_t reading, double answer_tokens) {
    reading_ = reading;
    answer_tokens_ = answer_tokens;
  }
  // At every tick: the mode in force, the live requests, and the load that they count for, which
  // moves less often than they do; 0 while it is on the move. Time without a request does not
  // count, nor does the first window after a change of mode: the requests have yet to follow it.
  void Follow(ServiceMode mode, int32_t live, int32_t load, absl::Time now);

  // Takes the window as it is, however little it shows: the wait for it is over.
  void Conclude();

  // Of all `load` requests together; nothing if it was never measured, or is forgotten. A window
  // need not hold as many prompts as belong to its tokens: their cost and that of tokens are taken
  // apart and put together for a mean answer, where both were seen.
  std::optional<double> Measured(ServiceMode mode, int32_t load) const;
  // Of one request, from token to token while no live request prefilled; nothing where that
  // was too rare, as under a stream of short requests.
  std::optional<double> MeasuredMsPerToken(ServiceMode mode, int32_t load) const;
  // Windows that it is measured by.
  int Windows(ServiceMode mode, int32_t load) const;
  // The prediction for such a load, with what was measured in place of what was predicted; where
  // one mode alone was measured and made less than predicted, the other is taken down alike. What
  // was measured of the mode that is `doubted` counts by its windows, beside one of prediction.
  ModePrediction Correct(ModePrediction prediction, int32_t load,
                         std::optional<ServiceMode> doubted = std::nullopt) const;

 private:
  // Tokens, and the time in which they came, summed over the requests.
  struct Tally {
    double tokens = 0, request_seconds = 0;
    double begun = 0;    // First tokens among them.
    double seconds = 0;  // Time with requests.
    void Fade(double keep, const Tally& more) {
      tokens = keep * tokens + more.tokens;
      request_seconds = keep * request_seconds + more.request_seconds;
      begun = keep * begun + more.begun;
      seconds = keep * seconds + more.seconds;
    }
  };
  struct Memory {
    Tally all, decoding;  // Both fade alike.
    double windows = 0;   // In it; parts add up.
    int spells = 0;       // How often the mode came into force at such a load.
    absl::Time at = absl::InfinitePast();
  };

  bool Forgotten(const Memory& memory) const;
  // Null where nothing whole is remembered.
  const Memory* Recall(ServiceMode mode, int32_t load) const;
  // Tokens per request in this window.
  double TokensPerRequest() const;
  // That make a whole window.
  double WindowTokens() const;
  bool WindowIsWhole() const;
  void BeginWindow();
  // Ends the window early.
  void Interrupt();
  // `share` of a whole window.
  void Remember(double share);

  Memory memories_[2][kSizes];  // By mode.
  ServiceMode mode_ = ServiceMode::kRouted;
  int size_ = 0;
  absl::Time seen_ = absl::InfinitePast();  // The last call.
  int32_t live_ = 0;                        // Then.
  bool new_spell_ = false;                  // Mode or size have changed since the last window.
  bool settling_ = false;                   // This window shows the other mode's requests: drop it.
  int64_t fresh_ = 0, fresh_begun_ = 0;     // Tokens and first tokens since the last call.
  double answer_tokens_ = 0;
  int32_t reading_ = 0;      // Now.
  bool all_wrote_ = false;   // At the last call no request was prefilling.
  Tally window_, decoding_;  // Of this window; decoding: while all of them wrote.
  // Time of prompts that are being prefilled. It counts with the first token that comes of it, so
  // that a window has no part of a prompt.
  Tally pending_;
};

}  // namespace tokenrouter
