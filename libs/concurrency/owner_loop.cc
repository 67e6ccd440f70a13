#include "libs/concurrency/owner_loop.h"

#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"

namespace tokenrouter {

OwnerLoop::OwnerLoop(Options options)
    : options_(std::move(options)), mailbox_(options_.mailbox_limit) {}

OwnerLoop::~OwnerLoop() { Stop(); }

void OwnerLoop::Start() {
  TR_CHECK(!thread_.joinable()) << "loop " << options_.name << " started twice";
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), options_.name.substr(0, 15).c_str());
}

bool OwnerLoop::Post(std::function<void()> closure) { return mailbox_.TryPush(std::move(closure)); }

void OwnerLoop::Stop() {
  mailbox_.Close();
  if (thread_.joinable()) {
    TR_CHECK(thread_.get_id() != std::this_thread::get_id()) << "loop stopped from itself";
    thread_.join();
  }
}

absl::Time OwnerLoop::Beat() {
  const absl::Time now = options_.now();
  beat_ = absl::ToUnixNanos(now);
  return now;
}

absl::Status OwnerLoop::Alive(absl::Duration bound) const {
  const int64_t beat = beat_;
  if (beat == kAsleep) return absl::OkStatus();
  const absl::Duration stuck = options_.now() - absl::FromUnixNanos(beat);
  if (stuck <= bound) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the loop ", options_.name, " has not gone round for ",
                                             absl::FormatDuration(stuck)));
}

void OwnerLoop::Run() {
  heard_until_ = Beat();
  absl::Duration wait = options_.idle();
  while (true) {
    beat_ = kAsleep;
    auto closures = mailbox_.PopAll(wait);
    if (closures.empty() && mailbox_.closed()) return;
    wait = RunAll(std::move(closures));
  }
}

absl::Duration OwnerLoop::RunAll(std::vector<std::function<void()>> closures) {
  const absl::Time taken = Beat();
  absl::Time batch_end = taken + options_.batch_time;
  int batch = 0;
  for (size_t i = 0; i < closures.size(); ++i) {
    closures[i]();
    closures[i] = nullptr;  // What it holds, such as a read credit, is free when it has run.
    ++batch;
    const absl::Time now = Beat();
    if (i + 1 == closures.size()) break;
    if (batch < options_.batch_closures && now < batch_end) continue;
    (void)options_.idle();
    batch = 0;
    batch_end = Beat() + options_.batch_time;
  }
  heard_until_ = taken;
  return options_.idle();
}

}  // namespace tokenrouter
