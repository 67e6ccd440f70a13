// Tests which gRPC calls are refused before they cost anything, while earlier work waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "absl/strings/str_cat.h"
#include "libs/concurrency/mutex.h"
#include "libs/rpc/channel_factory.h"
#include "libs/rpc/server_runtime.h"
#include "libs/status/status_matchers.h"
#include "libs/timing/simulated_clock.h"
#include "services/gateway/grpc/generate_service.h"
#include "services/gateway/testing/fake_scheduler_port.h"
#include "services/gateway/testing/fake_text_model.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

// Keeps what is posted until Release, then runs everything at once.
class HeldWork {
 public:
  void Post(std::function<void()> closure) {
    {
      MutexLock lock(&mutex_);
      if (!released_) {
        waiting_.push_back(std::move(closure));
        changed_.SignalAll();
        return;
      }
    }
    closure();
  }
  void WaitFor(size_t count) {
    MutexLock lock(&mutex_);
    while (waiting_.size() < count) changed_.Wait(&mutex_);
  }
  size_t size() {
    MutexLock lock(&mutex_);
    return waiting_.size();
  }
  void Release() {
    std::vector<std::function<void()>> waiting;
    {
      MutexLock lock(&mutex_);
      released_ = true;
      waiting.swap(waiting_);
    }
    for (const auto& closure : waiting) closure();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
};

class GenerateAdmissionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto runtime = ServerRuntime::Start({.address = "127.0.0.1:0", .services = {&service_}});
    ASSERT_THAT(runtime, IsOk());
    runtime_ = *std::move(runtime);
    stub_ = api::Generation::NewStub(MakeChannel(absl::StrCat("127.0.0.1:", runtime_->port())));
  }
  static api::GenerateRequest Request() {
    api::GenerateRequest request;
    request.set_model("tokenrouter");
    request.set_prompt("hi");
    return request;
  }
  grpc::Status Generate(const api::GenerateRequest& request) {
    grpc::ClientContext context;
    return stub_->Generate(&context, request)->Finish();
  }

  prometheus::Registry registry_;
  GatewayMetrics metrics_{&registry_};
  FakeTextModel model_;
  FakeSchedulerPort port_;
  SimulatedClock clock_;
  bool throws_ = false;
  RequestIntake intake_{IntakeOptions{}, &model_, [this] {
                          if (throws_) throw std::bad_alloc();
                          return uint64_t{1};
                        }};
  HeldWork work_;
  absl::Status admits_;
  GenerateService service_{
      {.generation = {&port_, &model_, &metrics_, &clock_},
       .intake = &intake_,
       .admit = [this] { return admits_; },
       .post = [this](std::function<void()> closure) { work_.Post(std::move(closure)); },
       .max_waiting = 1}};
  std::unique_ptr<ServerRuntime> runtime_;
  std::unique_ptr<api::Generation::Stub> stub_;
};

TEST_F(GenerateAdmissionTest, ACallThatIsNotAdmittedIsRefusedBeforeAnyWork) {
  admits_ = absl::ResourceExhaustedError("full");
  api::GenerateRequest not_even_read = Request();
  not_even_read.clear_input();
  EXPECT_THAT(Generate(not_even_read).error_message(), HasSubstr("full"));
  EXPECT_EQ(work_.size(), 0u);
}

TEST_F(GenerateAdmissionTest, CallsThatWaitForTheirTextWorkAreBounded) {
  grpc::ClientContext context;
  const auto first = stub_->Generate(&context, Request());
  work_.WaitFor(1);
  EXPECT_EQ(Generate(Request()).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  port_.refuses = true;
  work_.Release();
  EXPECT_THAT(first->Finish().error_message(), HasSubstr("takes no requests"));
  // Its entry among the waiting calls is free again.
  EXPECT_THAT(Generate(Request()).error_message(), HasSubstr("takes no requests"));
}

TEST_F(GenerateAdmissionTest, AnExceptionFailsItsOwnCall) {
  work_.Release();
  throws_ = true;
  const grpc::Status status = Generate(Request());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_THAT(status.error_message(), HasSubstr("the gateway failed"));
}

}  // namespace
}  // namespace tokenrouter
