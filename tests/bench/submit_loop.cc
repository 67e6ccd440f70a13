#include "tests/bench/submit_loop.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libs/concurrency/bounded_queue.h"
#include "libs/rpc/channel_factory.h"
#include "libs/rpc/client_stream.h"
#include "libs/status/status_macros.h"
#include "proto/scheduler.grpc.pb.h"

namespace tokenrouter {
namespace {

using Stream = ClientStream<v1::GatewayFrame, v1::SchedulerFrame>;

constexpr size_t kMaxFrames = 1 << 16;
constexpr absl::Duration kSilence =
    absl::Seconds(30);  // No frame for so long: the system has stopped.

class SubmitLoop {
 public:
  explicit SubmitLoop(const SubmitLoopOptions& options)
      : options_(options), stub_(v1::Scheduler::NewStub(MakeChannel(options.scheduler))) {}

  absl::StatusOr<SubmitLoopResult> Run() {
    writer_ = Stream::Start(
        [this](grpc::ClientContext* context, Stream::Reactor* reactor) {
          stub_->async()->Connect(context, reactor);
        },
        {[this](v1::SchedulerFrame frame) { (void)frames_.TryPush(std::move(frame)); },
         [this](const absl::Status&) { frames_.Close(); }});
    const absl::Status status = Loop();
    writer_->Finish(absl::OkStatus());
    while (!frames_.closed()) frames_.PopAll(absl::Milliseconds(100));
    TR_RETURN_IF_ERROR(status);
    return Report();
  }

 private:
  absl::Status Loop() {
    v1::GatewayFrame hello;
    hello.mutable_hello()->set_gateway_id("submit_loop");
    hello.mutable_hello()->set_protocol_version(1);
    hello.mutable_hello()->set_pair("default");
    if (!writer_->Write(std::move(hello)))
      return absl::UnavailableError("the scheduler refused the stream");
    const absl::Time start = absl::Now();
    measured_from_ = start + options_.warm_up;
    const absl::Time end = measured_from_ + options_.duration;
    while (absl::Now() < end) {
      const auto frames = frames_.PopAll(kSilence);
      if (frames.empty()) return absl::UnavailableError("the scheduler sent nothing for 30 s");
      v1::GatewayFrame reply;
      for (const v1::SchedulerFrame& frame : frames) TR_RETURN_IF_ERROR(Handle(frame, &reply));
      if (reply.submits_size() + reply.acks_size() == 0) continue;
      reply.set_term(term_);
      if (!writer_->Write(std::move(reply))) return absl::UnavailableError("the stream broke");
    }
    return absl::OkStatus();
  }

  absl::Status Handle(const v1::SchedulerFrame& frame, v1::GatewayFrame* reply) {
    term_ = frame.term();
    if (frame.has_welcome()) {
      for (int i = 0; i < options_.requests; ++i) AddSubmit(reply);
    }
    if (frame.rejections_size() > 0) {
      return absl::InternalError(absl::StrCat("rejected: ", frame.rejections(0).message()));
    }
    const absl::Time now = absl::Now();
    for (const v1::TokenChunk& chunk : frame.chunks()) Count(chunk, now, reply);
    return absl::OkStatus();
  }

  void Count(const v1::TokenChunk& chunk, absl::Time now, v1::GatewayFrame* reply) {
    if (now >= measured_from_) {
      for (const char author : chunk.authors()) large_ += author == 2;
      committed_ += chunk.ids_size();
      last_ = now;
    }
    auto [live, inserted] = last_chunk_.try_emplace(chunk.handle(), now);
    if (!inserted && chunk.ids_size() > 0) {
      if (now >= measured_from_) gaps_.push_back(absl::ToDoubleMilliseconds(now - live->second));
      live->second = now;
    }
    if (chunk.has_finish()) {
      last_chunk_.erase(chunk.handle());
      finished_ += now >= measured_from_;
      AddSubmit(reply);
    } else {
      v1::Ack* ack = reply->add_acks();
      ack->set_handle(chunk.handle());
      ack->set_position(chunk.base_position() + chunk.ids_size());
    }
  }

  void AddSubmit(v1::GatewayFrame* reply) {
    v1::Submit* submit = reply->add_submits();
    submit->set_handle(++next_);
    v1::GenerationSpec* spec = submit->mutable_spec();
    spec->set_request_id(absl::StrCat("loop-", next_));
    spec->set_pair("default");
    spec->set_prompt_length(options_.prompt_tokens);
    spec->mutable_sampling()->set_temperature(0);
    spec->mutable_sampling()->set_seed(next_);
    spec->mutable_routing()->set_algorithm(options_.algorithm);
    if (options_.algorithm == "random")
      (*spec->mutable_routing()->mutable_parameters())["p"] = options_.r;
    spec->mutable_stop()->set_max_new_tokens(options_.new_tokens);
    spec->mutable_stop()->set_ignore_eos(true);
    for (int i = 0; i < options_.prompt_tokens; ++i) {
      submit->add_ids(static_cast<int>((next_ * 31 + static_cast<uint64_t>(i) * 7) % 250));
    }
  }

  SubmitLoopResult Report() {
    SubmitLoopResult result;
    const double seconds = absl::ToDoubleSeconds(last_ - measured_from_);
    result.committed_per_s = seconds > 0 ? static_cast<double>(committed_) / seconds : 0;
    result.large_share =
        committed_ > 0 ? static_cast<double>(large_) / static_cast<double>(committed_) : 0;
    result.finished = finished_;
    std::sort(gaps_.begin(), gaps_.end());
    if (!gaps_.empty()) {
      result.gap_p50_ms = gaps_[gaps_.size() / 2];
      result.gap_p99_ms = gaps_[gaps_.size() * 99 / 100];
    }
    return result;
  }

  const SubmitLoopOptions options_;
  const std::unique_ptr<v1::Scheduler::Stub> stub_;
  BoundedQueue<v1::SchedulerFrame> frames_{kMaxFrames};
  std::shared_ptr<Stream::Writer> writer_;
  uint64_t term_ = 0;
  uint64_t next_ = 0;
  absl::Time measured_from_;
  absl::Time last_;
  std::unordered_map<uint64_t, absl::Time> last_chunk_;
  int64_t committed_ = 0, large_ = 0, finished_ = 0;
  std::vector<double> gaps_;
};

}  // namespace

absl::StatusOr<SubmitLoopResult> RunSubmitLoop(const SubmitLoopOptions& options) {
  return SubmitLoop(options).Run();
}

}  // namespace tokenrouter
