// The compute threads of one engine. Work is claimed item by item, and a worker that was not
// scheduled in time is not waited for: on a machine shared with other processes the calling thread
// continues alone. (With pthreadpool, where every worker must check in at every job, each of a
// step's hundred jobs can cost a scheduler period.) Ownership: owns the worker threads. Threads:
// one thread at a time may call For; it takes part in the work. Units: `threads` counts the caller.
// Items are handed out dynamically, so a result must never depend on which thread runs an item.
// Workers spin for about 100 us after a job, then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tokenrouter {

// How much lower than normal compute threads run by default: threads that move messages go first.
inline constexpr int kDefaultComputeNice = 5;

// Lowers the calling thread's priority to at least `nice` (0: leaves it). A refusal is ignored:
// priority is about speed only.
void LowerThisThread(int nice);

class ThreadPool {
 public:
  // `threads` <= 0: one per core this process may use.
  ThreadPool(int threads, int nice);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls function(item, thread) for every item in [0, items), thread in [0, threads()), and
  // returns when all are done; what the calls wrote is then visible. `operations` is about how many
  // simple operations (a multiply-add, an exchanged float) all items are: a small job runs on the
  // calling thread. REQUIRES: items <= kMaxItems.
  template <typename Function>
  void For(int64_t items, int64_t operations, const Function& function) {
    if (operations < kOperationsWorthAThread || items <= 1 || workers_.empty()) {
      for (int64_t item = 0; item < items; ++item) function(item, 0);
      return;
    }
    Run(
        items,
        [](void* context, int64_t item, int thread) {
          (*static_cast<const Function*>(context))(item, thread);
        },
        const_cast<Function*>(&function));
  }
  // About 10 us of one thread; handing work over costs a few, and more on a busy machine.
  static constexpr int64_t kOperationsWorthAThread = 1 << 16;
  static constexpr int kIndexBits = 20;
  static constexpr int64_t kMaxItems = (int64_t{1} << kIndexBits) - 1;

 private:
  using Task = void (*)(void* context, int64_t item, int thread);
  void Run(int64_t items, Task task, void* context);
  void Work(int thread, int nice);
  // Claims and runs one item of the current job; false when none is left.
  bool RunOne(int thread);

  // The current job's number, number of items and next item in one word, so that claiming an item
  // proves that the job is still the one whose task was read. Written by the caller and by
  // claims.
  std::atomic<uint64_t> claim_{0};
  std::atomic<Task> task_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int32_t> unfinished_{0};  // Items of the current job; the caller waits for 0.
  std::atomic<uint32_t> job_{0};        // Number of the current job; workers wait for a change.
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace tokenrouter
