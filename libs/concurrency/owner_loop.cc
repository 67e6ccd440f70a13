#include "libs/concurrency/owner_loop.h"

#include <pthread.h>

#include <utility>

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

void OwnerLoop::Run() {
  absl::Duration wait = options_.idle();
  while (true) {
    const auto closures = mailbox_.PopAll(wait);
    for (const auto& closure : closures) closure();
    if (closures.empty() && mailbox_.closed()) return;
    wait = options_.idle();
  }
}

}  // namespace tokenrouter
