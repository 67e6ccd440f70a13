#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "libs/concurrency/bounded_queue.h"
#include "libs/rpc/channel_factory.h"
#include "libs/rpc/client_stream.h"
#include "libs/rpc/open_channels.h"
#include "libs/rpc/server_runtime.h"
#include "libs/rpc/server_stream.h"
#include "libs/status/status_matchers.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {
namespace {

using Incoming = wire::WorkerFrame;
using Outgoing = wire::CommandFrame;
using Server = ServerStream<Incoming, Outgoing>;
using Client = ClientStream<Incoming, Outgoing>;

// Answers each worker frame with a command frame of the same term; a frame of term 0 ends the
// stream with an error.
class EchoService : public wire::Scheduler::CallbackService {
 public:
  grpc::ServerBidiReactor<Incoming, Outgoing>* Attach(
      grpc::CallbackServerContext* context) override {
    return Server::Start(context, [this](std::shared_ptr<Server::Writer> writer) {
      return Server::Handlers{[writer](const Incoming& frame, const ReadCredit&) {
                                if (frame.term() == 0)
                                  return writer->Finish(absl::FailedPreconditionError("no term"));
                                Outgoing reply;
                                reply.set_term(frame.term());
                                EXPECT_TRUE(writer->Write(std::move(reply)));
                              },
                              [this] { EXPECT_TRUE(closed_.TryPush(1)); }};
    });
  }
  BoundedQueue<int> closed_{100};
};

class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = ServerRuntime::Start({.address = "127.0.0.1:0", .services = {&service_}});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    Connect(server_->port());
  }
  void Connect(int port) {
    stub_ = wire::Scheduler::NewStub(MakeChannel("127.0.0.1:" + std::to_string(port)));
    closed_ = closed_promise_.get_future();
    writer_ = Client::Start(
        [this](grpc::ClientContext* context, Client::Reactor* reactor) {
          stub_->async()->Attach(context, reactor);
        },
        {[this](const Outgoing& frame, const ReadCredit&) {
           EXPECT_TRUE(received_.TryPush(frame.term()));
         },
         [this](const absl::Status& status) { closed_promise_.set_value(status); }});
  }
  std::vector<uint64_t> Receive(size_t count) {
    std::vector<uint64_t> terms;
    while (terms.size() < count) {
      const auto more = received_.PopAll(absl::Seconds(10));
      if (more.empty()) break;
      terms.insert(terms.end(), more.begin(), more.end());
    }
    return terms;
  }

  EchoService service_;
  std::unique_ptr<ServerRuntime> server_;
  std::unique_ptr<wire::Scheduler::Stub> stub_;
  BoundedQueue<uint64_t> received_{10000};
  std::promise<absl::Status> closed_promise_;
  std::future<absl::Status> closed_;
  std::shared_ptr<Client::Writer> writer_;
};

TEST_F(StreamTest, EchoesInOrderAndEndsWhenTheClientFinishes) {
  constexpr uint64_t kFrames = 500;
  for (uint64_t term = 1; term <= kFrames; ++term) {
    Incoming frame;
    frame.set_term(term);
    ASSERT_TRUE(writer_->Write(std::move(frame)));
  }
  const std::vector<uint64_t> terms = Receive(kFrames);
  ASSERT_EQ(terms.size(), kFrames);
  for (uint64_t i = 0; i < kFrames; ++i) EXPECT_EQ(terms[i], i + 1);
  writer_->Finish(absl::OkStatus());
  EXPECT_THAT(closed_.get(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(service_.closed_.PopAll(absl::Seconds(10)).size(), 1u);
  EXPECT_FALSE(writer_->Write(Incoming())) << "a finished stream refuses";
}

TEST_F(StreamTest, CarriesTheServersFinalStatus) {
  ASSERT_TRUE(writer_->Write(Incoming()));
  EXPECT_THAT(closed_.get(),
              StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::HasSubstr("no term")));
}

TEST_F(StreamTest, SurvivesWritersOnManyThreadsWhileTheServerGoesAway) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      Incoming frame;
      frame.set_term(1);
      while (writer_->Write(frame)) std::this_thread::yield();
    });
  }
  EXPECT_FALSE(Receive(10).empty());
  server_->Drain(absl::ZeroDuration());
  EXPECT_FALSE(closed_.get().ok());
  writer_->Finish(absl::OkStatus());
  for (std::thread& thread : threads) thread.join();
}

TEST(StreamWriterTest, RefusesBeyondItsLimitAndFinishesAfterTheQueue) {
  std::vector<int> started;
  int finished = 0;
  StreamWriter<int> writer({[&](const int* value) { started.push_back(*value); },
                            [&](const absl::Status&) { ++finished; }},
                           /*limit=*/2);
  EXPECT_TRUE(writer.Write(1));
  EXPECT_TRUE(writer.Write(2));
  EXPECT_FALSE(writer.Write(3));
  writer.Finish(absl::OkStatus());
  writer.OnWriteDone(true);
  EXPECT_EQ(finished, 0);
  writer.OnWriteDone(true);
  EXPECT_EQ(started, (std::vector<int>{1, 2}));
  EXPECT_EQ(finished, 1);
  writer.Finish(absl::OkStatus());
  EXPECT_EQ(finished, 1);
}

TEST(StreamWriterTest, RefusesBeyondItsBytesButTakesOneMessageOfAnySize) {
  StreamWriter<int> writer({[](const int*) {}, [](const absl::Status&) {}}, /*limit=*/100,
                           /*limit_bytes=*/sizeof(int) - 1);
  EXPECT_TRUE(writer.Write(1));
  EXPECT_FALSE(writer.Write(2));
  writer.OnWriteDone(true);
  EXPECT_TRUE(writer.Write(3));
}

TEST(StreamWriterTest, AbandonDropsWhatWaitsAndCancelsTheWriteInFlight) {
  std::vector<int> started;
  int finished = 0;
  int cancelled = 0;
  StreamWriter<int> writer({[&](const int* value) { started.push_back(*value); },
                            [&](const absl::Status&) { ++finished; }, [&] { ++cancelled; }});
  EXPECT_TRUE(writer.Write(1));
  EXPECT_TRUE(writer.Write(2));
  writer.Abandon(absl::ResourceExhaustedError("the peer does not read"));
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(finished, 0) << "the reactor may not end while a write is in flight";
  writer.OnWriteDone(false);
  EXPECT_EQ(started, (std::vector<int>{1}));
  EXPECT_EQ(finished, 1);
}

// Its peer never reads, so that a write stays in flight.
class DeafService : public wire::Scheduler::CallbackService {
 public:
  grpc::ServerBidiReactor<Incoming, Outgoing>* Attach(grpc::CallbackServerContext*) override {
    return new Deaf;
  }

 private:
  class Deaf : public grpc::ServerBidiReactor<Incoming, Outgoing> {
    void OnCancel() override { Finish(grpc::Status::CANCELLED); }
    void OnDone() override { delete this; }
  };
};

TEST(ClientStreamTest, AbandonEndsACallWhosePeerDoesNotRead) {
  DeafService service;
  const auto server = ServerRuntime::Start({.address = "127.0.0.1:0", .services = {&service}});
  ASSERT_THAT(server, IsOk());
  const auto stub =
      wire::Scheduler::NewStub(MakeChannel("127.0.0.1:" + std::to_string((*server)->port())));
  std::promise<absl::Status> closed;
  const auto writer =
      Client::Start([&stub](grpc::ClientContext* context,
                            Client::Reactor* reactor) { stub->async()->Attach(context, reactor); },
                    {[](const Outgoing&, const ReadCredit&) {},
                     [&closed](const absl::Status& status) { closed.set_value(status); }},
                    /*pending_limit=*/4);
  Incoming large;
  large.mutable_hello()->set_worker_id(std::string(1 << 20, 'x'));
  while (writer->Write(large)) std::this_thread::yield();
  writer->Abandon(absl::ResourceExhaustedError("the peer does not read"));
  EXPECT_THAT(closed.get_future().get(), StatusIs(absl::StatusCode::kCancelled));
}

// Writes to a client that never reads until it may write no more, then gives it up.
class AbandoningService : public wire::Scheduler::CallbackService {
 public:
  grpc::ServerBidiReactor<Incoming, Outgoing>* Attach(
      grpc::CallbackServerContext* context) override {
    return Server::Start(
        context,
        [this](std::shared_ptr<Server::Writer> writer) {
          return Server::Handlers{[this, writer](const Incoming&, const ReadCredit&) {
                                    ++frames_;
                                    if (frames_ > 1) return;
                                    Outgoing large;
                                    large.add_opens()->set_state(std::string(1 << 20, 'x'));
                                    while (writer->Write(large)) std::this_thread::yield();
                                    writer->Abandon(absl::ResourceExhaustedError("does not read"));
                                  },
                                  [this] { EXPECT_TRUE(closed_.TryPush(1)); }};
        },
        /*pending_limit=*/4);
  }
  std::atomic<int> frames_{0};
  BoundedQueue<int> closed_{100};
};

// Never reads, and says nothing of its own end.
class DeafClient : public grpc::ClientBidiReactor<Incoming, Outgoing> {
 public:
  explicit DeafClient(wire::Scheduler::Stub* stub) {
    stub->async()->Attach(&context_, this);
    AddHold();
    StartWrite(&frame_);
    StartCall();
  }
  ~DeafClient() override {
    context_.TryCancel();
    RemoveHold();
    done_.get_future().wait();
  }

 private:
  void OnDone(const grpc::Status&) override { done_.set_value(); }

  grpc::ClientContext context_;
  Incoming frame_;
  std::promise<void> done_;
};

TEST(ServerStreamTest, AbandonEndsACallWhosePeerDoesNotRead) {
  AbandoningService service;
  const auto server = ServerRuntime::Start({.address = "127.0.0.1:0", .services = {&service}});
  ASSERT_THAT(server, IsOk());
  const auto stub =
      wire::Scheduler::NewStub(MakeChannel("127.0.0.1:" + std::to_string((*server)->port())));
  const DeafClient client(stub.get());
  EXPECT_EQ(service.closed_.PopAll(absl::Seconds(10)).size(), 1u)
      << "the server must not wait for the peer to read";
}

// With gRPC 1.51 a callback that lets go of the last channel waits for itself. Here the owner lets
// go as soon as on_closed has said so, while gRPC's thread is still on its way out. No server runs
// in this process: it would keep the threads.
TEST(ClientStreamTest, ItsThreadNeverLetsGoOfTheLastChannel) {
  for (int i = 0; i < 200; ++i) {
    const auto stub = wire::Scheduler::NewStub(MakeChannel("127.0.0.1:1"));  // Refuses at once.
    std::atomic<bool> closed{false};
    Client::Start([&stub](grpc::ClientContext* context,
                          Client::Reactor* reactor) { stub->async()->Attach(context, reactor); },
                  {[](const Outgoing&, const ReadCredit&) {},
                   [&closed](const absl::Status&) { closed = true; }})
        ->Finish(absl::OkStatus());
    while (!closed) std::this_thread::yield();
  }
}

TEST(OpenChannelsTest, KeepsAChannelUntilItsStreamHasClosedAndTheOwnerAsks) {
  const auto channel = std::make_shared<int>(1);
  OpenChannels channels;
  channels.Keep(1, channel);
  channels.Keep(2, channel);
  EXPECT_EQ(channel.use_count(), 3);
  channels.Closed(1);
  EXPECT_EQ(channel.use_count(), 3) << "gRPC's thread lets go of nothing";
  channels.Keep(3, channel);
  EXPECT_EQ(channel.use_count(), 3) << "1 went, 3 came";
  channels.Closed(2);
  channels.Closed(3);
}

TEST(OpenChannelsTest, WaitsForTheLastStream) {
  std::atomic<bool> closed{false};
  std::thread grpc_thread;
  {
    OpenChannels channels;
    channels.Keep(1, std::make_shared<int>(1));
    grpc_thread = std::thread([&] {
      closed = true;
      channels.Closed(1);
    });
  }
  EXPECT_TRUE(closed);
  grpc_thread.join();
}

}  // namespace
}  // namespace tokenrouter
