// Clients of a gateway that keep asking, cancel, read slowly and send bad requests, and the counts
// of their results. Answers that are promised to be the same each time are compared with the first
// one. Ownership: owns the clients' threads. Threads: Counts from any; the rest from the owner's.
// The first kMostProblems errors are printed on stderr.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "libs/concurrency/mutex.h"
#include "tests/bench/soak/soak_requests.h"

namespace tokenrouter {

struct SoakCounts {
  int64_t answered = 0;     // To the end, of which:
  int64_t compared = 0;     // equal to the first answer of the same request,
  int64_t differing = 0;    // or not.
  int64_t cancelled = 0;    // Connections dropped; what had come was the start of the first answer.
  int64_t refused = 0;      // Bad requests, refused as they must be.
  int64_t turned_away = 0;  // Refused with 429 after waiting for capacity, as a full system may.
  int64_t failed = 0;       // Everything else, differing answers too.
  int64_t tokens = 0, large_tokens = 0, prompt_tokens = 0;  // Of answers to the end.
};

class SoakLoad {
 public:
  // Starts the clients. `seed` determines what they choose.
  SoakLoad(int http_port, int clients, uint64_t seed);
  ~SoakLoad() { Stop(); }

  // Returns when every client has finished its request.
  void Stop();
  SoakCounts Counts() const;

 private:
  static constexpr int64_t kMostProblems = 20;

  // An index below zero means a unique request.
  void RunClient(uint64_t seed);
  void AskBadly();
  void AskWhole(int index);
  void AskStreaming(int index, bool slowly);
  void Cancel(int index, int after_events);
  ChatRequest ChatOf(int index);
  void AddAnswer(int index, const ChatAnswer& answer);
  void AddTurnedAway();
  void AddProblem(const std::string& what);

  const int http_port_;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> next_number_ = 0;  // Of unique and bad requests.
  mutable Mutex mutex_;
  SoakCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::optional<std::vector<int64_t>>> first_ids_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> clients_;
};

}  // namespace tokenrouter
