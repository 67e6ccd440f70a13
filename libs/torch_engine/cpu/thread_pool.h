// The process's compute threads: one pthreadpool that XNNPACK and our own kernels share, so that no
// two teams of threads fight for the same cores.
// Ownership: owns the worker threads. Threads: one thread at a time may call For; it takes part in
// the work. Units: `threads` counts the caller. Work items are handed out dynamically, so a result
// must never depend on which thread runs an item.
#pragma once

#include <cstddef>
#include <cstdint>

struct pthreadpool;

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

  int threads() const { return threads_; }
  pthreadpool* handle() const { return pool_; }

  // Calls function(item, thread) for every item in [0, items), thread in [0, threads()).
  template <typename Function>
  void For(int64_t items, const Function& function) {
    Run(
        items,
        [](void* context, size_t thread, size_t item) {
          (*static_cast<const Function*>(context))(static_cast<int64_t>(item),
                                                   static_cast<int>(thread));
        },
        const_cast<Function*>(&function));
  }

  // Sends workers that spin for the next job to sleep, so that an idle engine burns no core.
  void Rest();

 private:
  using Task = void (*)(void* context, size_t thread, size_t item);
  void Run(int64_t items, Task task, void* context);

  pthreadpool* pool_ = nullptr;
  int threads_ = 0;
};

}  // namespace tokenrouter
