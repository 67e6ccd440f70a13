#include "libs/torch_engine/cpu/thread_pool.h"

#include <emmintrin.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

// Pauses before a thread gives up its core: about 100 us.
constexpr int kSpins = 4000;

int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Returns when `word` differs from `value`.
template <typename T>
void WaitForChange(const std::atomic<T>& word, T value) {
  for (int i = 0; i < kSpins; ++i) {
    if (word.load(std::memory_order_acquire) != value) return;
    _mm_pause();
  }
  word.wait(value, std::memory_order_acquire);
}

constexpr uint64_t Index(uint64_t claim) { return claim & ThreadPool::kMaxItems; }
constexpr uint64_t Items(uint64_t claim) {
  return (claim >> ThreadPool::kIndexBits) & ThreadPool::kMaxItems;
}

}  // namespace

void LowerThisThread(int nice) {
  if (nice <= 0) return;
  // On Linux a priority belongs to a thread.
  const id_t thread = static_cast<id_t>(gettid());
  if (getpriority(PRIO_PROCESS, thread) < nice) setpriority(PRIO_PROCESS, thread, nice);
}

ThreadPool::ThreadPool(int threads, int nice) {
  const int count = threads > 0 ? threads : UsableCores();
  for (int thread = 1; thread < count; ++thread) {
    workers_.emplace_back([this, thread, nice] { Work(thread, nice); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int64_t items, Task task, void* context) {
  TR_CHECK(items <= kMaxItems) << items;
  // No item of the last job is left, so no thread claims one while these change.
  task_.store(task, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  unfinished_.store(static_cast<int32_t>(items), std::memory_order_relaxed);
  const uint64_t job = job_.load(std::memory_order_relaxed) + 1;
  claim_.store(job << (2 * kIndexBits) | static_cast<uint64_t>(items) << kIndexBits,
               std::memory_order_release);
  job_.store(static_cast<uint32_t>(job), std::memory_order_release);
  job_.notify_all();
  while (RunOne(0)) {
  }
  for (int32_t left; (left = unfinished_.load(std::memory_order_acquire)) != 0;) {
    WaitForChange(unfinished_, left);
  }
}

bool ThreadPool::RunOne(int thread) {
  uint64_t claim = claim_.load(std::memory_order_acquire);
  Task task;
  void* context;
  do {
    if (Index(claim) >= Items(claim)) return false;
    task = task_.load(std::memory_order_relaxed);
    context = context_.load(std::memory_order_relaxed);
  } while (!claim_.compare_exchange_weak(claim, claim + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire));
  task(context, static_cast<int64_t>(Index(claim)), thread);
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
  return true;
}

void ThreadPool::Work(int thread, int nice) {
  LowerThisThread(nice);
  uint32_t seen = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    while (RunOne(thread)) {
    }
    WaitForChange(job_, seen);
    seen = job_.load(std::memory_order_acquire);
  }
}

}  // namespace tokenrouter
