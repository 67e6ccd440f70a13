// The server over real gRPC on loopback: frames arrive, ends of streams are noticed, a drain ends.
#include "services/scheduler/server/scheduler_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "libs/concurrency/bounded_queue.h"
#include "libs/rpc/channel_factory.h"
#include "libs/rpc/client_stream.h"
#include "libs/status/status_matchers.h"
#include "proto/packages.h"
#include "services/scheduler/testing/scripted_scheduler.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {
namespace {

using S = ScriptedScheduler;

constexpr absl::Duration kPatience = absl::Seconds(20);

// One client stream whose frames a test takes one by one.
template <typename Out, typename In>
class TestStream {
 public:
  using Stream = ClientStream<Out, In>;
  explicit TestStream(
      const std::function<void(grpc::ClientContext*, typename Stream::Reactor*)>& begin)
      : writer_(Stream::Start(
            begin,
            {[this](In frame, const ReadCredit&) { (void)frames_.TryPush(std::move(frame)); },
             [this](const absl::Status& status) { (void)ends_.TryPush(status); }})) {}
  ~TestStream() {
    writer_->Finish(absl::OkStatus());
    if (!ended_) End().IgnoreError();
  }

  void Say(const Out& frame) { ASSERT_TRUE(writer_->Write(frame)); }
  // The next frames, merged.
  In Hear() {
    In all;
    for (const In& frame : frames_.PopAll(kPatience)) all.MergeFrom(frame);
    return all;
  }
  void HangUp() { writer_->Finish(absl::OkStatus()); }
  absl::Status End() {
    ended_ = true;
    const auto ends = ends_.PopAll(kPatience);
    return ends.empty() ? absl::DeadlineExceededError("the stream did not end") : ends[0];
  }

 private:
  BoundedQueue<In> frames_{1024};
  BoundedQueue<absl::Status> ends_{1};
  bool ended_ = false;
  std::shared_ptr<typename Stream::Writer> writer_;
};

class SchedulerServerTest : public ::testing::Test {
 protected:
  void SetUp() override { StartServer(SchedulerOptions()); }
  void StartServer(SchedulerOptions options) {
    options.listen = options.admin = "127.0.0.1:0";
    TR_ASSERT_OK_AND_ASSIGN(server_, SchedulerServer::Start(options));
    stub_ = wire::Scheduler::NewStub(MakeChannel("127.0.0.1:" + std::to_string(server_->port())));
  }
  auto Worker() {
    return std::make_unique<TestStream<wire::WorkerFrame, wire::CommandFrame>>(
        [this](auto* context, auto* reactor) { stub_->async()->Attach(context, reactor); });
  }
  auto Gateway() {
    return std::make_unique<TestStream<wire::GatewayFrame, wire::SchedulerFrame>>(
        [this](auto* context, auto* reactor) { stub_->async()->Connect(context, reactor); });
  }
  wire::GetStateReply State() {
    grpc::ClientContext context;
    wire::GetStateReply reply;
    EXPECT_TRUE(stub_->GetState(&context, {}, &reply).ok());
    return reply;
  }
  // Waits for the number of attached workers by polling, which is ordered after what the server
  // has read.
  void AwaitWorkers(int count) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (State().workers_size() != count) {
      ASSERT_LT(absl::Now(), deadline) << "still " << State().workers_size() << " workers";
    }
  }

  std::unique_ptr<SchedulerServer> server_;
  std::unique_ptr<wire::Scheduler::Stub> stub_;
};

wire::WorkerFrame HelloFrame(Role role, const std::string& id) {
  wire::WorkerFrame frame;
  *frame.mutable_hello() = S::Hello(role, id);
  return frame;
}

wire::GatewayFrame GatewayHelloFrame() {
  wire::GatewayFrame frame;
  frame.mutable_hello()->set_gateway_id("gateway");
  frame.mutable_hello()->set_protocol_version(kProtocolVersion);
  frame.mutable_hello()->set_pair("pair");
  return frame;
}

TEST_F(SchedulerServerTest, CarriesARequestFromGatewayToWorkerAndBack) {
  const auto worker = Worker();
  worker->Say(HelloFrame(Role::kSmall, "small"));
  const wire::CommandFrame attached = worker->Hear();
  ASSERT_TRUE(attached.has_attached());
  const auto gateway = Gateway();
  gateway->Say(GatewayHelloFrame());
  ASSERT_TRUE(gateway->Hear().has_welcome());

  wire::GatewayFrame submit;
  submit.set_term(attached.term());
  *submit.add_submits() = S::MakeSubmit(7);
  gateway->Say(submit);
  const wire::CommandFrame told = worker->Hear();
  ASSERT_EQ(told.opens_size(), 1);

  wire::WorkerFrame step;
  step.set_term(attached.term());
  *step.add_rows() = S::Finished(S::Row(told.opens(0).request(), 1, 3, {40, 999}), 5);
  worker->Say(step);
  const wire::SchedulerFrame heard = gateway->Hear();
  ASSERT_EQ(heard.chunks_size(), 1);
  EXPECT_EQ(heard.chunks(0).handle(), 7u);
  EXPECT_EQ(heard.chunks(0).finish().position(), 5);
  EXPECT_EQ(worker->Hear().closes_size(), 1);
}

TEST_F(SchedulerServerTest, RefusesAWorkerThatDoesNotFitWithTheReason) {
  const auto worker = Worker();
  wire::WorkerFrame hello = HelloFrame(Role::kSmall, "small");
  hello.mutable_hello()->set_protocol_version(99);
  worker->Say(hello);
  EXPECT_THAT(worker->End(),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::HasSubstr("version 99")));
}

TEST_F(SchedulerServerTest, NoticesTheEndOfAStream) {
  auto worker = Worker();
  worker->Say(HelloFrame(Role::kSmall, "small"));
  AwaitWorkers(1);
  worker->HangUp();
  AwaitWorkers(0);
}

TEST_F(SchedulerServerTest, DrainEndsAtOnceWhenNothingIsInFlight) {
  const auto gateway = Gateway();
  gateway->Say(GatewayHelloFrame());
  ASSERT_TRUE(gateway->Hear().has_welcome());
  const absl::Time begin = absl::Now();
  server_->Drain();
  EXPECT_LT(absl::Now() - begin, SchedulerOptions().drain);
  server_.reset();
  EXPECT_FALSE(gateway->End().code() == absl::StatusCode::kDeadlineExceeded);
}

TEST_F(SchedulerServerTest, ADrainRefusesNobodyAndEndsInTime) {
  SchedulerOptions options;
  options.drain = absl::Milliseconds(300);
  options.core.max_requests = options.core.max_queued = 1 << 20;
  StartServer(options);
  const auto worker = Worker();
  worker->Say(HelloFrame(Role::kSmall, "small"));
  const uint64_t term = worker->Hear().term();
  const auto gateway = Gateway();
  gateway->Say(GatewayHelloFrame());
  ASSERT_TRUE(gateway->Hear().has_welcome());
  // Submits one more and waits until all are in; a refused one would be missing for ever.
  int submitted = 0;
  const auto submit = [&] {
    wire::GatewayFrame frame;
    frame.set_term(term);
    *frame.add_submits() = S::MakeSubmit(++submitted);
    gateway->Say(frame);
    const absl::Time deadline = absl::Now() + kPatience;
    for (int in = 0; in != submitted;) {
      ASSERT_LT(absl::Now(), deadline) << in << " of " << submitted;
      const wire::PairStatus pair = State().pairs(0);
      in = pair.running() + pair.queued();
    }
  };
  submit();
  std::atomic<bool> drained{false};
  std::thread drain([&] {
    server_->Drain();
    drained = true;
  });
  while (!drained && !HasFatalFailure()) submit();
  drain.join();
  EXPECT_GT(submitted, 1);
}

TEST_F(SchedulerServerTest, ReportsAPortThatIsTaken) {
  SchedulerOptions options;
  options.admin = "127.0.0.1:0";
  options.listen = "127.0.0.1:" + std::to_string(server_->port());
  EXPECT_THAT(SchedulerServer::Start(options), StatusIs(absl::StatusCode::kUnavailable));
  options.listen = "127.0.0.1:0";
  options.admin = "127.0.0.1:" + std::to_string(server_->admin_port());
  EXPECT_THAT(SchedulerServer::Start(options), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace tokenrouter
