// Streams of peers over real gRPC on loopback, and a loop that is behind.
#include "services/scheduler/server/peer_streams.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "libs/concurrency/bounded_queue.h"
#include "libs/rpc/channel_factory.h"
#include "libs/rpc/client_stream.h"
#include "libs/rpc/server_runtime.h"
#include "libs/status/status_matchers.h"
#include "proto/packages.h"
#include "services/scheduler/server/scheduler_service.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {
namespace {

using Client = ClientStream<wire::WorkerFrame, wire::CommandFrame>;

constexpr size_t kMailbox = 300;
constexpr uint64_t kFrames = 3000;

class PeerStreamsTest : public ::testing::Test {
 protected:
  PeerStreamsTest()
      : loop_({.name = "test", .mailbox_limit = kMailbox}),
        workers_(&loop_, {[this](StreamId, const wire::WorkerFrame& frame) {
                            EXPECT_TRUE(handled_.TryPush(frame.term()));
                          },
                          [](StreamId) {}}),
        gateways_(&loop_, {[](StreamId, const wire::GatewayFrame&) {}, [](StreamId) {}}),
        service_(&loop_, &gateways_, &workers_, [](wire::GetStateReply*) {}) {}

  void SetUp() override {
    loop_.Start();
    auto server = ServerRuntime::Start({.address = "127.0.0.1:0", .services = {&service_}});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = wire::Scheduler::NewStub(MakeChannel("127.0.0.1:" + std::to_string(server_->port())));
    closed_ = closed_promise_.get_future();
    writer_ = Client::Start(
        [this](auto* context, auto* reactor) { stub_->async()->Attach(context, reactor); },
        {[](const auto&...) {},
         [this](const absl::Status& status) { closed_promise_.set_value(status); }},
        /*pending_limit=*/kFrames);
  }
  void TearDown() override {
    writer_->Finish(absl::OkStatus());
    closed_.wait();  // Its end speaks to this fixture.
    server_.reset();
    loop_.Stop();
  }

  OwnerLoop loop_;
  BoundedQueue<uint64_t> handled_{kFrames};
  WorkerStreams workers_;
  GatewayStreams gateways_;
  SchedulerService service_;
  std::unique_ptr<ServerRuntime> server_;
  std::unique_ptr<wire::Scheduler::Stub> stub_;
  std::promise<absl::Status> closed_promise_;
  std::future<absl::Status> closed_;
  std::shared_ptr<Client::Writer> writer_;
};

TEST_F(PeerStreamsTest, APeerThatSendsFasterThanTheLoopHandlesIsSlowedDownNotCutOff) {
  std::promise<void> entered, release;
  ASSERT_TRUE(loop_.Post([&] {
    entered.set_value();
    release.get_future().wait();
  }));
  entered.get_future().wait();
  for (uint64_t term = 1; term <= kFrames; ++term) {
    wire::WorkerFrame frame;
    frame.set_term(term);
    ASSERT_TRUE(writer_->Write(std::move(frame)));
  }
  // These fit into gRPC's own buffers: more than the mailbox takes have left the writer.
  while (writer_->pending() > kFrames - 2 * kMailbox) std::this_thread::yield();
  release.set_value();
  std::vector<uint64_t> terms;
  while (terms.size() < kFrames) {
    const auto more = handled_.PopAll(absl::Seconds(20));
    if (more.empty()) break;
    terms.insert(terms.end(), more.begin(), more.end());
  }
  ASSERT_EQ(terms.size(), kFrames);
  for (uint64_t i = 0; i < kFrames; ++i) ASSERT_EQ(terms[i], i + 1);
  EXPECT_EQ(closed_.wait_for(std::chrono::seconds(0)), std::future_status::timeout)
      << "the stream has ended";
}

}  // namespace
}  // namespace tokenrouter
