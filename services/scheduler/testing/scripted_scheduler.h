// A SchedulerCore with scripted peers for tests: the test writes the frames, and what the core
// sends is recorded per stream. Time is a number that the test moves.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libs/tokens/protocol_version.h"
#include "services/scheduler/core/initial_grant.h"
#include "services/scheduler/core/scheduler_core.h"

namespace tokenrouter {

class RecordedPeers : public Output {
 public:
  void ToGateway(StreamId stream, wire::SchedulerFrame* frame) override {
    gateway_frames[stream].push_back(*frame);
  }
  void ToWorker(StreamId stream, wire::CommandFrame* frame) override {
    worker_frames[stream].push_back(*frame);
  }
  void CloseGateway(StreamId stream, const absl::Status& why) override {
    closed_gateways[stream] = why;
  }
  void CloseWorker(StreamId stream, const absl::Status& why) override {
    closed_workers[stream] = why;
  }

  std::map<StreamId, std::vector<wire::SchedulerFrame>> gateway_frames;
  std::map<StreamId, std::vector<wire::CommandFrame>> worker_frames;
  std::map<StreamId, absl::Status> closed_gateways;
  std::map<StreamId, absl::Status> closed_workers;
};

class ScriptedScheduler {
 public:
  static constexpr uint64_t kTerm = 1000;
  static constexpr StreamId kGateway = 1;
  static constexpr StreamId kSmall = 10;
  static constexpr StreamId kLarge = 20;

  // Unless the test is about it, a worker whose stream broke is lost at once.
  explicit ScriptedScheduler(CoreOptions options = {},
                             absl::Duration reattach_grace = absl::ZeroDuration())
      : core(WithGrace(options, reattach_grace), kTerm,
             {.opening = InitialGrant, .on_end = {}, .output = &peers}) {}
  static CoreOptions WithGrace(CoreOptions options, absl::Duration reattach_grace) {
    options.reattach_grace = reattach_grace;
    return options;
  }
  // Large rows wait until there are `rows` of them, while the small side is busy.
  static CoreOptions WaitingFor(int rows) {
    CoreOptions options;
    options.batching = {.kind = BatchingPolicy::Kind::kStatic, .m_large = rows};
    return options;
  }

  // ---- peers ----
  static wire::WorkerHello Hello(Role role, const std::string& id) {
    wire::WorkerHello hello;
    hello.set_worker_id(id);
    hello.set_role(role == Role::kSmall ? api::ROLE_SMALL : api::ROLE_LARGE);
    hello.set_pair("pair");
    hello.set_protocol_version(kProtocolVersion);
    hello.set_tokenizer_fingerprint("tokenizer");
    hello.set_usable_ids(1000);
    hello.add_eos_ids(999);
    hello.set_model(RoleName(role));
    hello.set_numerics_class("class");
    hello.set_total_blocks(100);
    hello.set_block_size(16);
    hello.set_context_limit(256);
    hello.set_max_sequences(8);
    return hello;
  }
  void Attach(StreamId stream, const wire::WorkerHello& hello) {
    wire::WorkerFrame frame;
    *frame.mutable_hello() = hello;
    ToCoreAsIs(stream, frame);
  }
  void Attach(Role role, StreamId stream) {
    Attach(stream, Hello(role, "worker-" + std::to_string(stream)));
  }
  void Connect(StreamId stream = kGateway, const std::string& id = "gateway",
               uint64_t highest_term = 0) {
    wire::GatewayFrame frame;
    frame.mutable_hello()->set_gateway_id(id);
    frame.mutable_hello()->set_protocol_version(kProtocolVersion);
    frame.mutable_hello()->set_pair("pair");
    frame.mutable_hello()->set_highest_term(highest_term);
    core.OnGatewayFrame(stream, frame, now);
    core.Flush(now);
  }
  // One small worker, one large, one gateway.
  void AttachAll() {
    Attach(Role::kSmall, kSmall);
    Attach(Role::kLarge, kLarge);
    Connect();
  }

  // ---- gateway frames ----
  static wire::Submit MakeSubmit(uint64_t handle, const std::string& algorithm = "never") {
    wire::Submit submit;
    submit.set_handle(handle);
    wire::GenerationSpec& spec = *submit.mutable_spec();
    spec.set_request_id("request-" + std::to_string(handle));
    spec.set_pair("pair");
    spec.set_prompt_length(3);
    spec.mutable_routing()->set_algorithm(algorithm);
    spec.mutable_stop()->set_max_new_tokens(100);
    for (const int id : {1, 2, 3}) submit.add_ids(id);
    return submit;
  }
  void Submit(const wire::Submit& submit, StreamId stream = kGateway) {
    wire::GatewayFrame frame;
    *frame.add_submits() = submit;
    ToCore(stream, frame);
  }
  void Submit(uint64_t handle, const std::string& algorithm = "never") {
    Submit(MakeSubmit(handle, algorithm));
  }
  void Ack(uint64_t handle, Position position) {
    wire::GatewayFrame frame;
    wire::Ack* const ack = frame.add_acks();
    ack->set_handle(handle);
    ack->set_position(position);
    ToCore(kGateway, frame);
  }
  void Cancel(uint64_t handle) {
    wire::GatewayFrame frame;
    frame.add_cancels()->set_handle(handle);
    ToCore(kGateway, frame);
  }
  void ToCore(StreamId stream, wire::GatewayFrame frame) {
    frame.set_term(core.term());
    core.OnGatewayFrame(stream, frame, now);
    core.Flush(now);
  }

  // ---- worker frames ----
  static wire::RowReport Row(uint64_t request, uint32_t epoch, Position base,
                             const std::vector<TokenId>& ids, char author = 1) {
    wire::RowReport row;
    row.set_request(request);
    row.set_epoch(epoch);
    row.set_base_position(base);
    row.mutable_ids()->Add(ids.begin(), ids.end());
    row.set_authors(std::string(ids.size(), author));
    for (size_t i = 0; i < ids.size(); ++i) row.add_entropies(0.5f);
    row.set_state("state");
    return row;
  }
  static wire::RowReport HandingOff(wire::RowReport row, Role to,
                                    const std::vector<TokenId>& tail = {}) {
    wire::Handoff* const handoff = row.mutable_handoff();
    handoff->set_to(to == Role::kSmall ? api::ROLE_SMALL : api::ROLE_LARGE);
    handoff->mutable_window()->set_kind(wire::Window::KIND_OWN_RULE);
    handoff->set_verify(static_cast<int32_t>(tail.size()));
    row.mutable_tail()->Add(tail.begin(), tail.end());
    return row;
  }
  static wire::RowReport Finished(wire::RowReport row, Position position) {
    row.mutable_finish()->set_position(position);
    row.mutable_finish()->set_reason(api::FINISH_REASON_STOP);
    return row;
  }
  void Send(StreamId stream, const wire::RowReport& row) {
    wire::WorkerFrame frame;
    *frame.add_rows() = row;
    ToCore(stream, frame);
  }
  void Closed(StreamId stream, uint64_t request) {
    wire::WorkerFrame frame;
    frame.add_closed(request);
    ToCore(stream, frame);
  }
  void Beat(StreamId stream, absl::Duration elapsed = absl::ZeroDuration()) {
    wire::WorkerFrame frame;
    frame.mutable_heartbeat()->set_step_elapsed_us(absl::ToInt64Microseconds(elapsed));
    ToCore(stream, frame);
  }
  void ToCore(StreamId stream, wire::WorkerFrame frame) {
    frame.set_term(core.term());
    ToCoreAsIs(stream, frame);
  }
  void ToCoreAsIs(StreamId stream, const wire::WorkerFrame& frame) {
    core.OnWorkerFrame(stream, frame, now);
    core.Flush(now);
  }
  void WorkerGone(StreamId stream) {
    core.OnWorkerGone(stream, now);
    core.Flush(now);
  }
  void Tick(absl::Duration step) {
    now += step;
    core.OnTick(now);
    core.Flush(now);
  }

  // ---- what the core sent since the last call, as one frame ----
  wire::CommandFrame Told(StreamId stream) {
    wire::CommandFrame all;
    for (const auto& frame : std::exchange(peers.worker_frames[stream], {})) all.MergeFrom(frame);
    return all;
  }
  wire::SchedulerFrame Heard(StreamId stream = kGateway) {
    wire::SchedulerFrame all;
    for (const auto& frame : std::exchange(peers.gateway_frames[stream], {})) all.MergeFrom(frame);
    return all;
  }
  void ForgetFrames() {
    peers.gateway_frames.clear();
    peers.worker_frames.clear();
  }
  uint64_t Dropped(DropReason reason) const { return core.counters().dropped[Index(reason)]; }

  absl::Time now = absl::UnixEpoch() + absl::Seconds(100);
  RecordedPeers peers;
  SchedulerCore core;
};

}  // namespace tokenrouter
