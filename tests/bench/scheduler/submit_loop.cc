#include "tests/bench/scheduler/submit_loop.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libs/concurrency/bounded_queue.h"
#include "libs/rpc/channel_factory.h"
#include "libs/rpc/client_stream.h"
#include "libs/status/status_macros.h"
#include "libs/tokens/protocol_version.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {
namespace {

using Stream = ClientStream<wire::GatewayFrame, wire::SchedulerFrame>;

constexpr size_t kMaxFrames = 1 << 16;
// Tokens of a request before they are acknowledged: a quarter of the scheduler's credit.
constexpr int kAckEvery = 16;
constexpr char kSmallAuthor = 1, kLargeAuthor = 2;
constexpr absl::Duration kSilence =
    absl::Seconds(30);  // Without a frame for this long the system has stopped.

double Percentile(std::vector<float>* values, double share) {
  if (values->empty()) return 0;
  const auto nth =
      values->begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), nth, values->end());
  return *nth;
}

class SubmitLoop {
 public:
  explicit SubmitLoop(const SubmitLoopOptions& options)
      : options_(options),
        live_(static_cast<size_t>(options.requests)),
        stub_(wire::Scheduler::NewStub(MakeChannel(options.scheduler))) {}

  absl::StatusOr<SubmitLoopResult> Run() {
    writer_ = Stream::Start(
        [this](grpc::ClientContext* context, Stream::Reactor* reactor) {
          stub_->async()->Connect(context, reactor);
        },
        {[frames = frames_](wire::SchedulerFrame frame, const ReadCredit&) {
           (void)frames->TryPush(std::move(frame));
         },
         [frames = frames_](const absl::Status&) { frames->Close(); }});
    const absl::Status status = Loop();
    writer_->Finish(absl::OkStatus());
    while (!frames_->closed()) frames_->PopAll(absl::Milliseconds(100));
    TR_RETURN_IF_ERROR(status);
    return Report();
  }

 private:
  absl::Status Loop() {
    wire::GatewayFrame hello;
    hello.mutable_hello()->set_gateway_id("submit_loop");
    hello.mutable_hello()->set_protocol_version(kProtocolVersion);
    hello.mutable_hello()->set_pair("default");
    if (!writer_->Write(std::move(hello)))
      return absl::UnavailableError("the scheduler refused the stream");
    const absl::Time begin = absl::Now() + options_.warm_up;
    for (absl::Time now = absl::Now(); now < begin + options_.duration; now = absl::Now()) {
      if (!measuring_ && now >= begin) {
        measuring_ = true;
        measured_from_ = now;
        if (options_.measuring) options_.measuring();
      }
      const auto frames = frames_->PopAll(kSilence);
      if (frames.empty()) return absl::UnavailableError("the scheduler sent nothing for 30 s");
      wire::GatewayFrame reply;
      for (const wire::SchedulerFrame& frame : frames) TR_RETURN_IF_ERROR(Handle(frame, &reply));
      if (reply.submits_size() + reply.acks_size() == 0) continue;
      reply.set_term(term_);
      if (!writer_->Write(std::move(reply))) return absl::UnavailableError("the stream broke");
    }
    return absl::OkStatus();
  }

  absl::Status Handle(const wire::SchedulerFrame& frame, wire::GatewayFrame* reply) {
    term_ = frame.term();
    if (frame.has_welcome()) {
      for (size_t i = 0; i < live_.size(); ++i) AddSubmit(&live_[i], i + 1, reply);
    }
    if (frame.rejections_size() > 0) {
      return absl::InternalError(absl::StrCat("rejected: ", frame.rejections(0).message()));
    }
    const absl::Time now = absl::Now();
    for (const wire::TokenChunk& chunk : frame.chunks()) Count(chunk, now, reply);
    return absl::OkStatus();
  }

  // One slot of the closed loop. Handles of slot i are i + 1, i + 1 + requests, ...
  struct Live {
    uint64_t handle = 0;
    absl::Time last_chunk;
    char last_author = 0;
    int unacknowledged = 0;
  };

  void Count(const wire::TokenChunk& chunk, absl::Time now, wire::GatewayFrame* reply) {
    Live& live = live_[(chunk.handle() - 1) % live_.size()];
    if (chunk.handle() != live.handle) return;
    if (measuring_) Measure(chunk, now, live);
    if (chunk.ids_size() > 0) {
      live.last_chunk = now;
      live.last_author = chunk.authors().back();
      live.unacknowledged += chunk.ids_size();
    }
    if (chunk.has_finish()) {
      finished_ += measuring_;
      AddSubmit(&live, live.handle + live_.size(), reply);
    } else if (live.unacknowledged >= kAckEvery) {
      wire::Ack* ack = reply->add_acks();
      ack->set_handle(chunk.handle());
      ack->set_position(chunk.base_position() + chunk.ids_size());
      live.unacknowledged = 0;
    }
  }

  void Measure(const wire::TokenChunk& chunk, absl::Time now, const Live& live) {
    if (chunk.ids_size() == 0) return;
    for (const char author : chunk.authors()) large_ += author == kLargeAuthor;
    committed_ += chunk.ids_size();
    last_ = now;
    if (live.last_author == 0) return;
    const auto gap = static_cast<float>(absl::ToDoubleMilliseconds(now - live.last_chunk));
    gaps_.push_back(gap);
    const bool routed = chunk.ids_size() == 1 && chunk.authors()[0] == kLargeAuthor &&
                        live.last_author == kSmallAuthor;
    if (routed) routed_gaps_.push_back(gap);
  }

  void AddSubmit(Live* live, uint64_t handle, wire::GatewayFrame* reply) {
    *live = {.handle = handle};
    wire::Submit* submit = reply->add_submits();
    submit->set_handle(handle);
    wire::GenerationSpec* spec = submit->mutable_spec();
    spec->set_request_id(absl::StrCat("loop-", start_, "-", handle));
    spec->set_pair("default");
    spec->set_prompt_length(options_.prompt_tokens);
    spec->mutable_sampling()->set_temperature(0);
    spec->mutable_sampling()->set_seed(handle);
    spec->mutable_routing()->set_algorithm(options_.algorithm);
    if (options_.algorithm == "random")
      (*spec->mutable_routing()->mutable_parameters())["p"] = options_.r;
    spec->mutable_stop()->set_max_new_tokens(options_.new_tokens);
    spec->mutable_stop()->set_ignore_eos(true);
    spec->set_service_mode(options_.service_mode);
    for (int i = 0; i < options_.prompt_tokens; ++i) {
      submit->add_ids(static_cast<int>((handle * 31 + static_cast<uint64_t>(i) * 7) % 250));
    }
  }

  SubmitLoopResult Report() {
    SubmitLoopResult result;
    const double seconds = absl::ToDoubleSeconds(last_ - measured_from_);
    result.committed_per_s = seconds > 0 ? static_cast<double>(committed_) / seconds : 0;
    result.large_share =
        committed_ > 0 ? static_cast<double>(large_) / static_cast<double>(committed_) : 0;
    result.committed = committed_;
    result.finished = finished_;
    result.gap_p50_ms = Percentile(&gaps_, 0.5);
    result.gap_p99_ms = Percentile(&gaps_, 0.99);
    result.routed_gap_p50_ms = Percentile(&routed_gaps_, 0.5);
    result.routed_gap_p99_ms = Percentile(&routed_gaps_, 0.99);
    return result;
  }

  const SubmitLoopOptions options_;
  std::vector<Live> live_;
  const std::unique_ptr<wire::Scheduler::Stub> stub_;
  // Shared with the stream, which is still inside Close when this may already be gone.
  const std::shared_ptr<BoundedQueue<wire::SchedulerFrame>> frames_ =
      std::make_shared<BoundedQueue<wire::SchedulerFrame>>(kMaxFrames);
  std::shared_ptr<Stream::Writer> writer_;
  uint64_t term_ = 0;
  const int64_t start_ = absl::ToUnixNanos(absl::Now());  // Makes request ids unique.
  bool measuring_ = false;
  absl::Time measured_from_;
  absl::Time last_;
  int64_t committed_ = 0, large_ = 0, finished_ = 0;
  std::vector<float> gaps_, routed_gaps_;
};

}  // namespace

absl::StatusOr<SubmitLoopResult> RunSubmitLoop(const SubmitLoopOptions& options) {
  return SubmitLoop(options).Run();
}

}  // namespace tokenrouter
