#include "libs/worker/process/worker_runner.h"

#include <future>

#include "libs/routing/wire_types.h"
#include "libs/status/status_matchers.h"
#include "libs/synthetic/synthetic_engine.h"
#include "libs/worker/core/worker_core.h"
#include "libs/worker/engines/synthetic_engine_setup.h"
#include "libs/worker/testing/scripted_attach_service.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

class WorkerRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = ServerRuntime::Start({.address = "127.0.0.1:0", .services = {&scheduler_}});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    options_.scheduler = "127.0.0.1:" + std::to_string(server_->port());
    options_.admin = "127.0.0.1:0";
    options_.engine = "timed";
    options_.timed_curve = "instant";
    options_.calibrate = false;
    SetHeartbeat(1000);
  }

  void SetHeartbeat(int32_t ms) {
    wire::Attached attached;
    attached.set_protocol_version(kProtocolVersion);
    attached.set_heartbeat_ms(ms);
    attached.set_keep_unclaimed_ms(60000);
    scheduler_.SetAttached(attached);
  }

  void Start(EngineFactory factory = [](const WorkerOptions& options, const LoadProgress&) {
    return MakeSyntheticEngine(Role::kSmall, options);
  }) {
    auto runner =
        WorkerRunner::Start(Role::kSmall, options_, std::move(factory),
                            [this](const absl::Status& status) { failed_.set_value(status); });
    ASSERT_THAT(runner, IsOk());
    runner_ = *std::move(runner);
  }
  bool WaitForHello() {
    return scheduler_.WaitFor([](const wire::WorkerFrame& frame) { return frame.has_hello(); });
  }
  static void AddRequest(uint64_t key, const std::string& id, int32_t max_new, int32_t credit,
                         wire::CommandFrame* frame) {
    wire::Open& open = *frame->add_opens();
    open.set_request(key);
    open.set_epoch(1);
    wire::GenerationSpec& spec = *open.mutable_spec();
    spec.set_request_id(id);
    spec.set_prompt_length(3);
    spec.mutable_routing()->set_algorithm("never");
    spec.mutable_stop()->set_max_new_tokens(max_new);
    for (const TokenId id_of_prompt : {1, 2, 3}) open.add_ids(id_of_prompt);
    open.set_credit(credit);
    *open.mutable_grant()->mutable_window() = ToWire(Window::OwnRule());
  }
  void OpenRequest(uint64_t key, const std::string& id, int32_t max_new, int32_t credit = 0) {
    wire::CommandFrame frame;
    AddRequest(key, id, max_new, credit, &frame);
    scheduler_.Send(std::move(frame));
  }
  bool WaitForRow(const std::function<bool(const wire::RowReport&)>& wanted) {
    return scheduler_.WaitFor([&wanted](const wire::WorkerFrame& frame) {
      return std::any_of(frame.rows().begin(), frame.rows().end(), wanted);
    });
  }

  ScriptedAttachService scheduler_;
  std::unique_ptr<ServerRuntime> server_;
  WorkerOptions options_;
  std::promise<absl::Status> failed_;
  std::unique_ptr<WorkerRunner> runner_;
};

TEST_F(WorkerRunnerTest, AttachesServesAndIsReady) {
  Start();
  ASSERT_TRUE(WaitForHello());
  OpenRequest(1, "a", 20);
  EXPECT_TRUE(WaitForRow([](const wire::RowReport& row) {
    return row.finish().reason() == api::FINISH_REASON_LENGTH && row.finish().position() == 23;
  }));
  EXPECT_THAT(runner_->ready(), IsOk());
}

TEST_F(WorkerRunnerTest, TellsWhatItsStepsCostAtEveryAttach) {
  options_.calibrate = true;
  Start();
  for (int attach = 0; attach < 2; ++attach) {
    EXPECT_TRUE(scheduler_.WaitFor([](const wire::WorkerFrame& frame) {
      return frame.hello().samples_size() == 9 && frame.hello().samples(0).rows() == 1;
    }));
    scheduler_.ForgetFrames();
    scheduler_.BreakStream();
  }
}

TEST_F(WorkerRunnerTest, HeartbeatsGoOnDuringALongStep) {
  options_.timed_curve = "base=400,row=0,id=0";
  SetHeartbeat(10);
  Start();
  ASSERT_TRUE(WaitForHello());
  OpenRequest(1, "a", 40);  // On a busy machine no heartbeat may fall into the first step.
  EXPECT_TRUE(scheduler_.WaitFor([](const wire::WorkerFrame& frame) {
    return frame.heartbeat().step_elapsed_us() > 50000 &&
           frame.heartbeat().step_predicted_us() == 400000;
  }));
}

TEST_F(WorkerRunnerTest, SaysWhatItKnowsBeforeALongStep) {
  options_.timed_curve = "base=500,row=0,id=0";
  Start();
  ASSERT_TRUE(WaitForHello());
  wire::CommandFrame frame;
  frame.add_closes()->set_request(9);
  AddRequest(1, "a", 1, /*credit=*/0, &frame);
  scheduler_.Send(std::move(frame));
  bool stepped = false;
  EXPECT_TRUE(scheduler_.WaitFor([&stepped](const wire::WorkerFrame& heard) {
    stepped |= heard.has_step();
    return heard.closed_size() > 0;
  }));
  EXPECT_FALSE(stepped) << "the freed slot waited for the step of another request";
}

TEST_F(WorkerRunnerTest, ComesBackAfterABrokenStreamWithWhatItHolds) {
  Start();
  ASSERT_TRUE(WaitForHello());
  OpenRequest(1, "kept", 100, /*credit=*/8);
  ASSERT_TRUE(WaitForRow([](const wire::RowReport& row) { return row.credit_blocked(); }));
  scheduler_.ForgetFrames();
  scheduler_.BreakStream();
  EXPECT_TRUE(scheduler_.WaitFor([](const wire::WorkerFrame& frame) {
    return frame.has_hello() && frame.hello().held_size() == 1 &&
           frame.hello().held(0).request_id() == "kept" && frame.hello().held(0).length() == 8 &&
           frame.hello().highest_term() == 101;
  }));
  OpenRequest(2, "b", 5);
  EXPECT_TRUE(WaitForRow([](const wire::RowReport& row) { return row.has_finish(); }));
}

TEST_F(WorkerRunnerTest, FindsASchedulerThatStartsLater) {
  const int port = server_->port();
  server_.reset();
  Start();
  // Every attempt fails until the scheduler listens.
  auto server = ServerRuntime::Start(
      {.address = "127.0.0.1:" + std::to_string(port), .services = {&scheduler_}});
  ASSERT_THAT(server, IsOk());
  server_ = *std::move(server);
  EXPECT_TRUE(WaitForHello());
}

TEST_F(WorkerRunnerTest, SaysWhyItWasRefusedAndTriesAgain) {
  scheduler_.SetRefusal(absl::FailedPreconditionError("another tokenizer"));
  Start();
  ASSERT_TRUE(WaitForHello());
  scheduler_.ForgetFrames();
  ASSERT_TRUE(WaitForHello());
  EXPECT_THAT(runner_->ready(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another tokenizer")));
  scheduler_.SetRefusal(absl::OkStatus());
  scheduler_.ForgetFrames();
  EXPECT_TRUE(WaitForHello());
}

TEST_F(WorkerRunnerTest, DrainLetsOpenRequestsEnd) {
  options_.timed_curve = "base=2,row=0,id=0";
  options_.drain_ms = 20000;
  Start();
  ASSERT_TRUE(WaitForHello());
  OpenRequest(1, "a", 50);
  ASSERT_TRUE(WaitForRow([](const wire::RowReport& row) { return row.request() == 1; }));
  std::thread closer([this] {
    EXPECT_TRUE(
        scheduler_.WaitFor([](const wire::WorkerFrame& frame) { return frame.draining(); }));
    EXPECT_TRUE(WaitForRow([](const wire::RowReport& row) { return row.has_finish(); }));
    wire::CommandFrame frame;
    frame.add_closes()->set_request(1);
    frame.mutable_closes(0)->set_epoch(1);
    scheduler_.Send(std::move(frame));
  });
  runner_->Drain();
  closer.join();
}

TEST_F(WorkerRunnerTest, DrainEndsWhenItsTimeIsUp) {
  options_.drain_ms = 20;
  Start();
  ASSERT_TRUE(WaitForHello());
  OpenRequest(1, "a", 100, /*credit=*/5);  // Becomes credit-blocked, so it never ends by itself.
  ASSERT_TRUE(WaitForRow([](const wire::RowReport& row) { return row.credit_blocked(); }));
  runner_->Drain();
  EXPECT_THAT(runner_->ready(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(WorkerRunnerTest, ReportsAnEngineThatDoesNotLoad) {
  Start([](const WorkerOptions&, const LoadProgress& progress) -> absl::StatusOr<WorkerEngine> {
    progress(1 << 20, 2 << 20);
    return absl::ResourceExhaustedError("needs 9 GB, has 8");
  });
  EXPECT_THAT(failed_.get_future().get(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("needs 9 GB")));
  EXPECT_THAT(runner_->ready(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("9 GB")));
}

TEST_F(WorkerRunnerTest, TellsHowFarLoadingIs) {
  std::promise<void> go_on;
  std::promise<void> halfway;
  Start([&](const WorkerOptions& options, const LoadProgress& progress) {
    progress(300 << 20, 600 << 20);
    halfway.set_value();
    go_on.get_future().wait();
    return MakeSyntheticEngine(Role::kSmall, options);
  });
  halfway.get_future().wait();
  EXPECT_THAT(runner_->ready(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("300 of 600")));
  go_on.set_value();
  EXPECT_TRUE(WaitForHello());
}

}  // namespace
}  // namespace tokenrouter
