// Tests the gRPC service in process, against a scripted scheduler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "libs/rpc/channel_factory.h"
#include "libs/status/status_matchers.h"
#include "libs/timing/real_clock.h"
#include "proto/packages.h"
#include "services/gateway/server/gateway_server.h"
#include "services/gateway/testing/fake_scheduler.h"
#include "services/gateway/testing/fake_text_model.h"
#include "tokenrouter/generation/v1/generation.grpc.pb.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;
using Requests = std::map<uint64_t, FakeScheduler::Request>;

// A call that stalls is a failed test, not a test that never ends.
constexpr auto kPatience = std::chrono::seconds(10);
constexpr int64_t kMaxBodyBytes = 1 << 20;

class GenerateServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    scheduler_.Start();
    GatewayOptions options;
    options.max_body_bytes = kMaxBodyBytes;
    options.http = options.grpc = options.admin = "127.0.0.1:0";
    options.scheduler = absl::StrCat("127.0.0.1:", scheduler_.port());
    auto server =
        GatewayServer::Start(options, std::make_unique<FakeTextModel>(), &RealClock::Get());
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = api::Generation::NewStub(MakeChannel(absl::StrCat("127.0.0.1:", server_->grpc_port())));
    WaitForWorkers();
  }
  void WaitForWorkers() {
    for (int i = 0; i < 10000; ++i) {
      grpc::ClientContext context;
      api::ListModelsReply reply;
      ASSERT_TRUE(stub_->ListModels(&context, {}, &reply).ok());
      if (reply.models(0).context_limit() > 0) return;
    }
    FAIL() << "no message of the scheduler ever arrived";
  }
  static api::GenerateRequest Request(int max_new_tokens) {
    api::GenerateRequest request;
    request.set_model("tokenrouter");
    request.set_prompt("hi");
    request.set_max_new_tokens(max_new_tokens);
    return request;
  }
  grpc::Status Generate(const api::GenerateRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto reader = stub_->Generate(&context, request);
    api::GenerateReply reply;
    while (reader->Read(&reply)) {
      text_ += reply.text();
      tokens_ += reply.tokens_size();
      last_ = reply;
    }
    return reader->Finish();
  }

  FakeScheduler scheduler_;
  std::unique_ptr<GatewayServer> server_;
  std::unique_ptr<api::Generation::Stub> stub_;
  std::string text_;
  int tokens_ = 0;
  api::GenerateReply last_;
};

TEST_F(GenerateServiceTest, StreamsTextAndEndsWithUsage) {
  api::GenerateRequest request = Request(300);
  request.set_return_routing(true);
  ASSERT_TRUE(Generate(request).ok());
  EXPECT_EQ(text_, FakeScheduler::Text(300));
  EXPECT_EQ(tokens_, 300);
  EXPECT_EQ(last_.finish_reason(), api::FINISH_REASON_LENGTH);
  EXPECT_EQ(last_.usage().large_tokens(), 30);
  EXPECT_EQ(last_.request_id().size(), 32u);
}

TEST_F(GenerateServiceTest, AStopStringLongerThanTheCreditDoesNotStall) {
  api::GenerateRequest request = Request(300);
  request.add_stop(FakeScheduler::Text(250) + "!");
  ASSERT_TRUE(Generate(request).ok());
  EXPECT_EQ(text_, FakeScheduler::Text(300));
}

TEST_F(GenerateServiceTest, RefusesBadRequestsByField) {
  api::GenerateRequest request = Request(0);
  EXPECT_THAT(Generate(request).error_message(), HasSubstr("max_new_tokens is 0"));
  request = Request(5);
  request.set_model("none");
  EXPECT_EQ(Generate(request).error_code(), grpc::StatusCode::NOT_FOUND);
  request = Request(5);
  request.clear_input();
  EXPECT_EQ(Generate(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request = Request(5);
  api::ChatMessage* message = request.mutable_chat()->add_messages();
  message->set_role("boss");
  EXPECT_THAT(Generate(request).error_message(), HasSubstr("messages[0].role is \"boss\""));
  request.clear_chat();
  request.mutable_chat();
  EXPECT_THAT(Generate(request).error_message(), HasSubstr("messages has 0 entries"));
  request = Request(5);
  request.add_stop("");
  EXPECT_THAT(Generate(request).error_message(), HasSubstr("stop[0] has 0 bytes"));
  request = Request(5);
  request.mutable_routing()->set_algorithm("oracle");
  EXPECT_THAT(Generate(request).error_message(), HasSubstr("oracle"));
  request = Request(5);
  request.set_service_mode(static_cast<api::ServiceMode>(7));
  EXPECT_THAT(Generate(request).error_message(), HasSubstr("service_mode is 7; allowed: 0 (the"));
  request = Request(5);
  request.set_token_slo_ms(-1);
  EXPECT_THAT(Generate(request).error_message(),
              HasSubstr("token_slo_ms is -1; allowed: [0, 600000]"));
}

TEST_F(GenerateServiceTest, RefusesAMessageLargerThanABody) {
  api::GenerateRequest request = Request(5);
  request.set_prompt(std::string(kMaxBodyBytes + 1, 'x'));
  EXPECT_EQ(Generate(request).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  text_.clear();
  EXPECT_TRUE(Generate(Request(5)).ok());
  EXPECT_EQ(text_, FakeScheduler::Text(5));
}

TEST_F(GenerateServiceTest, PassesRefusalsOfTheSchedulerOn) {
  wire::Rejection rejection;
  rejection.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  rejection.set_message("full");
  scheduler_.Reject(rejection);
  EXPECT_EQ(Generate(Request(5)).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GenerateServiceTest, CancelsWhenTheClientDoes) {
  scheduler_.Hold();
  grpc::ClientContext context;
  const auto reader = stub_->Generate(&context, Request(5));
  ASSERT_TRUE(scheduler_.WaitFor([](const Requests& requests) { return !requests.empty(); }));
  context.TryCancel();
  EXPECT_TRUE(scheduler_.WaitFor(
      [](const Requests& requests) { return requests.begin()->second.cancelled; }));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(GenerateServiceTest, AGatewayThatStopsEndsItsCalls) {
  scheduler_.Hold();
  grpc::ClientContext context;
  const auto reader = stub_->Generate(&context, Request(5));
  ASSERT_TRUE(scheduler_.WaitFor([](const Requests& requests) { return !requests.empty(); }));
  server_.reset();
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace tokenrouter
