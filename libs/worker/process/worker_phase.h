// WorkerPhase is the phase of a worker, for /readyz and the log: loading, connecting, attached,
// draining. Threads: thread-safe.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "libs/concurrency/mutex.h"

namespace tokenrouter {

class WorkerPhase {
 public:
  void SetNotReady(std::string phase) {
    MutexLock lock(&mutex_);
    status_ = absl::UnavailableError(phase);
  }
  void SetReady() {
    MutexLock lock(&mutex_);
    status_ = absl::OkStatus();
  }
  // OK: attached. Otherwise UNAVAILABLE with the phase.
  absl::Status Get() const {
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_) = absl::UnavailableError("starting");
};

}  // namespace tokenrouter
