// OwnerLoop is one thread that owns some hot state: others post closures, the loop runs them in
// order, and a hook runs after each batch of them and whenever the hook's own timer is due. A batch
// is what waits, but at most batch_closures and about batch_time: ticks come also under a mailbox
// that never empties.
// Ownership: owns its thread. Stop() runs what was posted before it, then joins; the destructor
// calls Stop(). Threads: Post is thread-safe and never blocks; everything posted runs on the loop's
// thread. Errors: Post returns false when the mailbox is full or the loop is stopping; the closure
// is dropped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/concurrency/bounded_queue.h"

namespace tokenrouter {

// For probes: a round takes microseconds to milliseconds, and peers have given a loop up that stood
// still for so long.
inline constexpr absl::Duration kLoopWedged = absl::Seconds(10);

class OwnerLoop {
 public:
  struct Options {
    std::string name = "loop";     // Thread name, at most 15 characters.
    size_t mailbox_limit = 65536;  // Closures waiting at once.
    // Far above what waits in normal service, far below a tick's worth of work.
    int batch_closures = 256;
    absl::Duration batch_time = absl::Milliseconds(5);
    // Runs on the loop thread at its start, after each batch of closures and after each wait.
    // Returns how long the loop may sleep before calling it again (zero: at once; infinite: until
    // the next post).
    std::function<absl::Duration()> idle = [] { return absl::InfiniteDuration(); };
    std::function<absl::Time()> now = absl::Now;
  };

  explicit OwnerLoop(Options options);
  ~OwnerLoop();
  OwnerLoop(const OwnerLoop&) = delete;
  OwnerLoop& operator=(const OwnerLoop&) = delete;

  // REQUIRES: called once.
  void Start();
  [[nodiscard]] bool Post(std::function<void()> closure);
  // Idempotent. REQUIRES: not called from the loop's own thread.
  void Stop();
  // UNAVAILABLE while the loop has been in one closure or hook for longer than `bound`.
  // Thread-safe, never blocks. A loop that sleeps is alive.
  absl::Status Alive(absl::Duration bound) const;
  // All that was posted before this time has run. Of the loop's thread, for the hook: silence from
  // then on may only mean that the loop is behind.
  absl::Time heard_until() const { return heard_until_; }

 private:
  void Run();
  // Runs what was taken from the mailbox, with the hook in between; returns what the hook said
  // last.
  absl::Duration RunAll(std::vector<std::function<void()>> closures);

  // Says that the loop goes round now. Returns the time.
  absl::Time Beat();

  const Options options_;
  // Unix nanoseconds; kAsleep: it waits for something to do.
  static constexpr int64_t kAsleep = -1;
  std::atomic<int64_t> beat_{kAsleep};
  BoundedQueue<std::function<void()>> mailbox_;
  absl::Time heard_until_ = absl::InfinitePast();  // Of the loop's thread.
  std::thread thread_;
};

}  // namespace tokenrouter
