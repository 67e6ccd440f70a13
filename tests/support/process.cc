#include "tests/support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

extern char** environ;

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<Process>> Process::Start(const std::vector<std::string>& argv) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> raw;
  for (const std::string& argument : argv) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, raw[0], &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::InternalError(absl::StrCat("cannot start ", argv[0], ": ", std::strerror(error)));
  }
  return std::unique_ptr<Process>(new Process(pid, ends[0]));
}

Process::Process(pid_t pid, int stderr_fd)
    : pid_(pid), reader_([this, stderr_fd] { ReadLines(stderr_fd); }) {}

Process::~Process() {
  Signal(SIGKILL);
  WaitForExit(absl::InfiniteDuration());
  reader_.join();
}

void Process::Signal(int signal) {
  if (!reaped_) kill(pid_, signal);
}

std::optional<int> Process::WaitForExit(absl::Duration timeout) {
  if (reaped_) return std::nullopt;
  {
    // The child's end closes its stderr, which ends the reader: that is the event to wait for.
    const absl::Time deadline = absl::Now() + timeout;
    MutexLock lock(&mutex_);
    while (!ended_) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return std::nullopt;
      changed_.WaitFor(&mutex_, left);
    }
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  reaped_ = true;
  return status;
}

std::optional<boost::json::object> Process::WaitForEvent(const std::string& event,
                                                         absl::Duration timeout,
                                                         const std::string& key,
                                                         const std::string& value) {
  const absl::Time deadline = absl::Now() + timeout;
  size_t next = 0;
  MutexLock lock(&mutex_);
  while (true) {
    for (; next < lines_.size(); ++next) {
      boost::system::error_code error;
      const boost::json::value parsed = boost::json::parse(lines_[next], error);
      if (error || !parsed.is_object()) continue;
      const boost::json::object& line = parsed.as_object();
      const auto* found = line.if_contains("event");
      if (found == nullptr || !found->is_string() || found->as_string() != event) continue;
      if (key.empty()) return line;
      const auto* field = line.if_contains(key);
      if (field != nullptr && field->is_string() && field->as_string() == value) return line;
    }
    const absl::Duration left = deadline - absl::Now();
    if (ended_ || left <= absl::ZeroDuration()) return std::nullopt;
    changed_.WaitFor(&mutex_, left);
  }
}

std::string Process::Output() const {
  MutexLock lock(&mutex_);
  std::string all;
  for (const std::string& line : lines_) absl::StrAppend(&all, line, "\n");
  return all;
}

void Process::ReadLines(int fd) {
  std::string partial;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
    partial.append(buffer, static_cast<size_t>(got));
    MutexLock lock(&mutex_);
    for (size_t end; (end = partial.find('\n')) != std::string::npos; partial.erase(0, end + 1)) {
      lines_.push_back(partial.substr(0, end));
    }
    changed_.SignalAll();
  }
  close(fd);
  MutexLock lock(&mutex_);
  ended_ = true;
  changed_.SignalAll();
}

}  // namespace tokenrouter
