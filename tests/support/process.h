// A child process of a test: a real binary with its stderr read line by line, so that tests wait
// for events and never sleep. Ownership: owns the child; the destructor kills it (SIGKILL) and
// reaps it. Threads: one test thread calls; a separate reader thread collects lines. Errors:
// Start fails with INTERNAL when the program cannot be spawned.
#pragma once

#include <sys/types.h>

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "libs/concurrency/mutex.h"

namespace tokenrouter {

class Process {
 public:
  // argv[0] is the path of the program.
  static absl::StatusOr<std::unique_ptr<Process>> Start(const std::vector<std::string>& argv);
  ~Process();

  pid_t pid() const { return pid_; }
  // Sends `signal`; no effect once the child has been reaped.
  void Signal(int signal);
  // The wait status when the child ends within `timeout`.
  std::optional<int> WaitForExit(absl::Duration timeout);

  // The first JSON log line whose "event" is `event` and that has `key` == `value` (an empty key
  // matches any), among lines already read and those to come within `timeout`.
  std::optional<boost::json::object> WaitForEvent(const std::string& event, absl::Duration timeout,
                                                  const std::string& key = "",
                                                  const std::string& value = "");
  // Everything read so far, for failure messages.
  std::string Output() const;

 private:
  Process(pid_t pid, int stderr_fd);
  void ReadLines(int fd);

  const pid_t pid_;
  bool reaped_ = false;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread reader_;
};

}  // namespace tokenrouter
