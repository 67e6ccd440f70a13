#include "tests/bench/scheduler/scripted_peers.h"

#include "libs/tokens/protocol_version.h"

namespace tokenrouter::bench {
namespace {

constexpr int32_t kContext = 1 << 20;

}  // namespace

wire::WorkerFrame ScriptedWorker::Hello() const {
  wire::WorkerFrame frame;
  wire::WorkerHello& hello = *frame.mutable_hello();
  hello.set_worker_id(std::string(RoleName(role_)) + std::to_string(number_));
  hello.set_role(role_ == Role::kSmall ? api::ROLE_SMALL : api::ROLE_LARGE);
  hello.set_pair("pair");
  hello.set_protocol_version(kProtocolVersion);
  hello.set_usable_ids(32000);
  hello.set_model(RoleName(role_));
  hello.set_total_blocks(1 << 20);
  hello.set_block_size(16);
  hello.set_context_limit(kContext);
  return frame;
}

void ScriptedWorker::Apply(const wire::CommandFrame& frame) {
  term_ = frame.term();
  for (const wire::Open& open : frame.opens()) {
    sequences_[open.request()] = {.epoch = open.epoch(),
                                  .committed = open.ids_size() - open.tail(),
                                  .credit = open.credit(),
                                  .running = role_ == Role::kSmall,
                                  .has_grant = true};
  }
  for (const wire::Extend& extend : frame.extends()) {
    Row& row = sequences_[extend.request()];
    row.committed = extend.base() + extend.ids_size() - extend.tail();
    row.running = role_ == Role::kSmall;
    row.has_grant = true;
  }
  for (const uint64_t request : frame.releases()) sequences_[request].running = true;
  for (const wire::Credit& credit : frame.credits()) {
    const auto found = sequences_.find(credit.request());
    if (found != sequences_.end()) found->second.credit = credit.until();
  }
  for (const wire::Close& close : frame.closes()) {
    sequences_.erase(close.request());
    closed_.push_back(close.request());
  }
}

std::optional<wire::WorkerFrame> ScriptedWorker::Step() {
  wire::WorkerFrame frame;
  auto next = sequences_.upper_bound(last_);
  for (size_t seen = 0; seen < sequences_.size() && frame.rows_size() < rows_; ++seen, ++next) {
    if (next == sequences_.end()) next = sequences_.begin();
    Row& row = next->second;
    if (!row.has_grant || !row.running || row.committed >= row.credit) continue;
    last_ = next->first;
    Write(next->first, &row, &frame);
  }
  if (frame.rows_size() == 0 && closed_.empty()) return std::nullopt;
  frame.set_term(term_);
  for (const uint64_t request : closed_) frame.add_closed(request);
  closed_.clear();
  wire::StepReport& step = *frame.mutable_step();
  step.set_seq(++steps_);
  step.set_rows(frame.rows_size());
  step.set_new_ids(frame.rows_size());
  step.set_elapsed_us(1000);
  step.set_predicted_us(1000);
  step.set_free_blocks(1 << 19);
  return frame;
}

void ScriptedWorker::Write(uint64_t request, Row* row, wire::WorkerFrame* frame) {
  wire::RowReport& report = *frame->add_rows();
  report.set_request(request);
  report.set_epoch(row->epoch);
  report.set_base_position(row->committed);
  report.add_ids(static_cast<int32_t>(row->committed * 7 % 31000));
  report.set_authors(std::string(1, role_ == Role::kSmall ? '\1' : '\2'));
  report.add_entropies(0.25f);
  report.add_logprobs(-0.25f);
  report.set_state("12345678");
  ++row->committed;
  const bool hands_off =
      role_ == Role::kLarge || (depart_every_ > 0 && row->committed % depart_every_ == 0);
  if (!hands_off) return;
  row->has_grant = row->running = false;
  wire::Handoff& handoff = *report.mutable_handoff();
  handoff.set_to(role_ == Role::kSmall ? api::ROLE_LARGE : api::ROLE_SMALL);
  handoff.mutable_window()->set_kind(wire::Window::KIND_OWN_RULE);
}

wire::GatewayFrame ScriptedGateway::Hello() const {
  wire::GatewayFrame frame;
  frame.mutable_hello()->set_gateway_id("gateway");
  frame.mutable_hello()->set_protocol_version(kProtocolVersion);
  frame.mutable_hello()->set_pair("pair");
  return frame;
}

void ScriptedGateway::Apply(const wire::SchedulerFrame& frame) {
  term_ = frame.term();
  for (const wire::TokenChunk& chunk : frame.chunks()) {
    tokens_ += chunk.ids_size();
    if (chunk.has_finish()) {
      unacknowledged_.erase(chunk.handle());
      ++finished_;
      --live_;
    } else {
      unacknowledged_[chunk.handle()] = chunk.base_position() + chunk.ids_size();
    }
  }
  rejected_ += frame.rejections_size();
  live_ -= frame.rejections_size();
}

std::optional<wire::GatewayFrame> ScriptedGateway::Take(bool acknowledge) {
  if (term_ == 0) return std::nullopt;
  wire::GatewayFrame frame;
  frame.set_term(term_);
  for (; live_ < requests_; ++live_) *frame.add_submits() = MakeSubmit();
  if (acknowledge) {
    for (const auto& [handle, position] : unacknowledged_) {
      wire::Ack& ack = *frame.add_acks();
      ack.set_handle(handle);
      ack.set_position(position);
    }
    unacknowledged_.clear();
  }
  if (frame.submits_size() == 0 && frame.acks_size() == 0) return std::nullopt;
  return frame;
}

wire::Submit ScriptedGateway::MakeSubmit() {
  wire::Submit submit;
  submit.set_handle(next_handle_++);
  wire::GenerationSpec& spec = *submit.mutable_spec();
  spec.set_request_id("request" + std::to_string(submit.handle()));
  spec.set_pair("pair");
  spec.set_prompt_length(prompt_tokens_);
  spec.mutable_stop()->set_max_new_tokens(new_tokens_);
  spec.mutable_routing()->set_algorithm(algorithm_);
  for (int i = 0; i < prompt_tokens_; ++i) submit.add_ids(i % 31000);
  return submit;
}

}  // namespace tokenrouter::bench
