#include "libs/torch_engine/cpu/thread_pool.h"

#include <pthreadpool.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

void LowerThisThread(int nice) {
  if (nice <= 0) return;
  // On Linux a priority belongs to a thread, and new threads inherit it.
  const id_t thread = static_cast<id_t>(gettid());
  if (getpriority(PRIO_PROCESS, thread) < nice) setpriority(PRIO_PROCESS, thread, nice);
}

ThreadPool::ThreadPool(int threads, int nice) : threads_(threads > 0 ? threads : UsableCores()) {
  // A thread of its own creates the pool: workers inherit its priority, the caller keeps its own.
  std::thread creator([this, nice] {
    LowerThisThread(nice);
    pool_ = pthreadpool_create(static_cast<size_t>(threads_));
  });
  creator.join();
  TR_CHECK(pool_ != nullptr) << "cannot create a pool of " << threads_ << " threads";
}

ThreadPool::~ThreadPool() { pthreadpool_destroy(pool_); }

void ThreadPool::Run(int64_t items, Task task, void* context) {
  if (items <= 0) return;
  if (items == 1) {
    task(context, 0, 0);
    return;
  }
  pthreadpool_parallelize_1d_with_thread(pool_, task, context, static_cast<size_t>(items), 0);
}

void ThreadPool::Rest() {
  const auto nothing = [](void*, size_t) {};
  pthreadpool_parallelize_1d(pool_, nothing, nullptr, static_cast<size_t>(threads_),
                             PTHREADPOOL_FLAG_YIELD_WORKERS);
}

}  // namespace tokenrouter
