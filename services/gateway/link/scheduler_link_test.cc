// Tests against a scripted scheduler that nothing is lost while the link's thread is blocked.
#include "services/gateway/link/scheduler_link.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "libs/telemetry/metrics.h"
#include "libs/timing/real_clock.h"
#include "services/gateway/testing/fake_scheduler.h"

namespace tokenrouter {
namespace {

using Requests = std::map<uint64_t, FakeScheduler::Request>;
constexpr int32_t kPrompt = 5;

// Collects tokens; blocks the link's thread until Release.
class HoldingSink final : public GenerationSink {
 public:
  void OnEvent(LinkEvent event) override {
    MutexLock lock(&mutex_);
    for (const TokenRecord& token : event.tokens) text_ += static_cast<char>(token.id);
    over_ = event.finish.has_value();
    EXPECT_TRUE(event.error.ok()) << event.error;
    changed_.SignalAll();
    while (holds_) changed_.Wait(&mutex_);
  }
  void Release() {
    MutexLock lock(&mutex_);
    holds_ = false;
    changed_.SignalAll();
  }
  void WaitForTokens(size_t count) {
    MutexLock lock(&mutex_);
    while (text_.size() < count) changed_.Wait(&mutex_);
  }
  std::string WaitForEnd() {
    MutexLock lock(&mutex_);
    while (!over_) changed_.Wait(&mutex_);
    return text_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool holds_ ABSL_GUARDED_BY(mutex_) = true;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

class SchedulerLinkTest : public ::testing::Test {
 protected:
  static constexpr size_t kMailbox = 2;

  void SetUp() override {
    scheduler_.Start();
    link_ = SchedulerLink::Start({.scheduler = absl::StrCat("127.0.0.1:", scheduler_.port()),
                                  .gateway_id = "test",
                                  .pair = "default"},
                                 &RealClock::Get(), &metrics_, kMailbox);
    while (!link_->Health().up) std::this_thread::yield();
  }
  uint64_t Submit(int tokens, std::shared_ptr<GenerationSink> sink) {
    wire::GenerationSpec spec;
    spec.set_prompt_length(kPrompt);
    spec.mutable_stop()->set_max_new_tokens(tokens);
    return link_->Submit(std::move(spec), std::vector<int32_t>(kPrompt, 'x'), std::move(sink));
  }

  prometheus::Registry registry_;
  GatewayMetrics metrics_{&registry_};
  FakeScheduler scheduler_;
  std::unique_ptr<SchedulerLink> link_;
};

TEST_F(SchedulerLinkTest, ACancelIsNotLostToAFullMailbox) {
  scheduler_.Hold(1);
  const auto sink = std::make_shared<HoldingSink>();
  const uint64_t first = Submit(10, sink);
  sink->WaitForTokens(1);
  scheduler_.Hold(0);  // The others get no tokens, so their sinks do not block the thread.
  while (Submit(10, std::make_shared<HoldingSink>()) != 0) {
  }
  link_->Cancel(first);
  sink->Release();
  EXPECT_TRUE(scheduler_.WaitFor([first](const Requests& requests) {
    return requests.count(first) > 0 && requests.at(first).cancelled;
  }));
}

TEST_F(SchedulerLinkTest, FramesLostToAFullMailboxAreMadeUpForOnANewStream) {
  const auto sink = std::make_shared<HoldingSink>();
  const uint64_t handle = Submit(100, sink);
  sink->WaitForTokens(FakeScheduler::kCredit);
  while (metrics_.dropped_overflow.Value() == 0) scheduler_.SetPair(1, 1 << 20);
  link_->Acknowledge(handle, kPrompt + FakeScheduler::kCredit);
  sink->Release();
  EXPECT_EQ(sink->WaitForEnd(), FakeScheduler::Text(100));
  EXPECT_GT(metrics_.resubmitted.Value(), 0);
}

}  // namespace
}  // namespace tokenrouter
