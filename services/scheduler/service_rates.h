// ServiceRates remembers how fast a pair committed tokens in either service mode, apart for each
// size of load: what a plan predicts leaves out changes of turns and strangers on the machine, and
// those cost the one mode more than the other. Loads are told apart by powers of two, so a load
// that comes back is served as experience has it from its first moment. Only the mode in force can
// be measured. What was measured is forgotten after a while, later each time, so a mode that once
// was slower is tried again, but ever more seldom. Threads: lives on the scheduler's loop. Units:
// tokens per second. Cost: O(1) per call.
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

  void Commit(int64_t tokens) { committed_ += tokens; }
  // At every tick: the mode in force, the live requests, and the load that they count for, which
  // moves less often than they do; 0 while it is on the move. Time without a request does not
  // count, nor does the first window after a change of mode: the requests have yet to follow it.
  void Follow(ServiceMode mode, int32_t live, int32_t load, absl::Time now);

  // Takes the window as it is, however little it shows: nobody waits longer for it.
  void Conclude();

  // Of all `load` requests together; nothing if it was never measured, or is forgotten.
  std::optional<double> Measured(ServiceMode mode, int32_t load) const;
  // Windows that it is measured by.
  int Windows(ServiceMode mode, int32_t load) const;
  // The prediction for such a load, with what was measured in place of what was predicted; where
  // one mode alone was measured and made less than predicted, the other is taken down alike.
  ModePrediction Correct(ModePrediction prediction, int32_t load) const;

 private:
  struct Memory {
    double tokens = 0, request_seconds = 0;  // Both fade alike.
    int windows = 0;                         // Whole ones in it.
    int spells = 0;                          // How often the mode came into force at such a load.
    absl::Time at = absl::InfinitePast();
  };

  bool Forgotten(const Memory& memory) const;
  // Tokens per request in this window.
  double Written() const;
  void Begin();
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
  int64_t committed_ = 0;                   // In this window.
  absl::Duration served_;                   // Of it, with requests.
  double request_seconds_ = 0;              // The same, summed over the requests.
};

}  // namespace tokenrouter
