// ToyScheduler is a test double that follows the rules of the real scheduler for one request at a
// time per key, with none of its failure handling: it opens, extends, releases, credits and closes
// on two WorkerCores and collects the canonical history. Frames are exchanged synchronously.
// Threads: single-threaded; time is counted, not waited for.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "libs/routing/algorithms/algorithm_registry.h"
#include "libs/routing/wire_types.h"
#include "libs/status/check.h"
#include "libs/worker/core/worker_core.h"

namespace tokenrouter {

class ToyScheduler {
 public:
  struct Request {
    wire::GenerationSpec spec;
    std::vector<TokenId> ids;  // Committed.
    std::vector<TokenId> tail;
    std::string authors;
    std::string state;
    Role writer = Role::kSmall;
    wire::Window window;  // Of the current decode grant, and its verify.
    int32_t verify = 0;
    Position finish = 0;  // 0: goes on.
    api::FinishReason reason = api::FINISH_REASON_UNSPECIFIED;
    std::string detail;
    int64_t handoffs = 0;
    struct Side {
      bool open = false;
      uint32_t epoch = 0;
      Position known = 0;
    } sides[2];
    std::vector<TokenId> Generated() const {
      return {ids.begin() + spec.prompt_length(), ids.begin() + (finish > 0 ? finish : ids.size())};
    }
  };

  ToyScheduler(WorkerCore* small, WorkerCore* large) : cores_{small, large} {}

  // Lets the scheduler grant credit only this far ahead; 0: no limit.
  Position credit_window = 0;
  std::vector<TokenId> stop_ids;

  void Attach(uint64_t term = 1) {
    term_ = term;
    for (WorkerCore* core : cores_) {
      if (core == nullptr) continue;
      core->Hello();
      wire::CommandFrame frame = Frame();
      wire::Attached& attached = *frame.mutable_attached();
      attached.set_protocol_version(kProtocolVersion);
      attached.mutable_stop_ids()->Add(stop_ids.begin(), stop_ids.end());
      attached.set_keep_unclaimed_ms(1000);
      core->Apply(frame, now_);
    }
  }

  uint64_t Submit(const wire::GenerationSpec& spec, const std::vector<TokenId>& prompt) {
    const uint64_t key = next_key_++;
    Request& request = requests_[key];
    request.spec = spec;
    request.spec.set_prompt_length(static_cast<int32_t>(prompt.size()));
    request.ids = prompt;
    auto algorithm =
        CreateAlgorithm(spec.routing().algorithm(), ParametersFromWire(spec.routing()));
    TR_CHECK(algorithm.ok()) << algorithm.status();
    const Opening opening = (*algorithm)->Open();
    SetGrant(key, &request, opening.role, ToWire(opening.window), 0);
    return key;
  }

  void Close(uint64_t key) {
    Request& request = requests_[key];
    for (const Role role : {Role::kSmall, Role::kLarge}) {
      if (!side(&request, role).open) continue;
      wire::CommandFrame frame = Frame();
      wire::Close& close = *frame.add_closes();
      close.set_request(key);
      close.set_epoch(side(&request, role).epoch);
      side(&request, role).open = false;
      core(role).Apply(frame, now_);
    }
    if (request.finish == 0) request.finish = static_cast<Position>(request.ids.size());
  }

  // The stream of that side breaks and comes back; the same decode grant is given again.
  void Reconnect(Role role) {
    core(role).Detach();
    core(role).Hello();
    wire::CommandFrame frame = Frame();
    frame.mutable_attached()->mutable_stop_ids()->Add(stop_ids.begin(), stop_ids.end());
    frame.mutable_attached()->set_keep_unclaimed_ms(5);
    core(role).Apply(frame, now_);
    for (auto& [key, request] : requests_) {
      side(&request, role).open = false;
      if (request.finish > 0 || request.writer != role) continue;
      SetGrant(key, &request, role, wire::Window(request.window), request.verify);
    }
  }

  // One step of that side, if it has one. `meanwhile` may intervene between Plan and Complete.
  bool Step(
      Role role, const std::function<void()>& meanwhile = [] {}) {
    now_ += absl::Milliseconds(1);
    if (std::optional<wire::WorkerFrame> pending = core(role).TakePending(now_))
      Take(role, *pending);
    std::optional<PlannedStep> step = core(role).Plan(now_);
    if (!step.has_value()) {
      if (std::optional<wire::WorkerFrame> said = core(role).TakePending(now_)) Take(role, *said);
      return false;
    }
    core(role).Execute(&*step).IgnoreError();  // Complete finds it in the step.
    meanwhile();
    now_ += absl::Milliseconds(1);
    Take(role, core(role).Complete(*std::move(step), now_));
    return true;
  }

  // Runs both sides alternately until nothing changes and no timer is pending.
  void RunAll() {
    while (true) {
      if (Step(Role::kSmall) | Step(Role::kLarge)) continue;
      const absl::Time next = std::min(cores_[0]->NextDeadline(), cores_[1]->NextDeadline());
      if (next == absl::InfiniteFuture()) return;
      now_ = std::max(now_, next);
    }
  }

  // When that side waits for a fuller batch, and the step of the other side that it waits for.
  void Defer(Role role, const wire::Deferral& deferral, const wire::PeerStep& peer) {
    wire::CommandFrame frame = Frame();
    *frame.mutable_deferral() = deferral;
    *frame.mutable_peer_step() = peer;
    core(role).Apply(frame, now_);
  }

  Request& request(uint64_t key) { return requests_.at(key); }
  std::map<uint64_t, Request>& requests() { return requests_; }
  absl::Time now() const { return now_; }
  std::vector<wire::WorkerFrame> frames[2];

 private:
  Request::Side& side(Request* request, Role role) {
    return request->sides[static_cast<int>(role)];
  }
  WorkerCore& core(Role role) { return *cores_[static_cast<int>(role)]; }
  wire::CommandFrame Frame() const {
    wire::CommandFrame frame;
    frame.set_term(term_);
    return frame;
  }

  std::vector<TokenId> History(const Request& request) const {
    std::vector<TokenId> history = request.ids;
    history.insert(history.end(), request.tail.begin(), request.tail.end());
    return history;
  }

  void SetGrant(uint64_t key, Request* request, Role to, const wire::Window& window,
                int32_t verify) {
    request->writer = to;
    request->window = window;
    request->verify = verify;
    Request::Side& target = side(request, to);
    const std::vector<TokenId> history = History(*request);
    wire::CommandFrame frame = Frame();
    wire::DecodeGrant grant;
    *grant.mutable_window() = window;
    grant.set_verify(verify);
    if (!target.open) {
      target.open = true;
      wire::Open& open = *frame.add_opens();
      open.set_request(key);
      open.set_epoch(++target.epoch);
      *open.mutable_spec() = request->spec;
      open.mutable_ids()->Add(history.begin(), history.end());
      open.set_tail(static_cast<int32_t>(request->tail.size()));
      open.set_state(request->state);
      *open.mutable_grant() = grant;
      open.set_credit(CreditOf(*request));
    } else {
      wire::Extend& extend = *frame.add_extends();
      extend.set_request(key);
      extend.set_epoch(target.epoch);
      extend.set_base(target.known);
      extend.mutable_ids()->Add(history.begin() + target.known, history.end());
      extend.set_tail(static_cast<int32_t>(request->tail.size()));
      extend.set_state(request->state);
      *extend.mutable_grant() = grant;
    }
    target.known = static_cast<Position>(history.size());
    frame.add_releases(key);
    AddCredit(key, *request, &frame);
    core(to).Apply(frame, now_);
  }

  Position CreditOf(const Request& request) const {
    return credit_window == 0 ? 0 : static_cast<Position>(request.ids.size()) + credit_window;
  }
  void AddCredit(uint64_t key, const Request& request, wire::CommandFrame* frame) {
    if (credit_window == 0) return;
    wire::Credit& credit = *frame->add_credits();
    credit.set_request(key);
    credit.set_until(CreditOf(request));
  }

  void Take(Role role, const wire::WorkerFrame& frame) {
    frames[static_cast<int>(role)].push_back(frame);
    for (const wire::RowReport& row : frame.rows()) TakeRow(role, row);
  }

  void TakeRow(Role role, const wire::RowReport& row) {
    const auto found = requests_.find(row.request());
    if (found == requests_.end() || found->second.finish > 0) return;
    Request& request = found->second;
    Request::Side& mine = side(&request, role);
    if (!mine.open || row.epoch() != mine.epoch || request.writer != role) return;
    TR_CHECK(row.base_position() == static_cast<Position>(request.ids.size()));
    TR_CHECK(row.ids_size() == row.entropies_size() && row.ids_size() == row.logprobs_size() &&
             row.ids_size() == static_cast<int>(row.authors().size()));
    const std::vector<TokenId> old = History(request);
    request.ids.insert(request.ids.end(), row.ids().begin(), row.ids().end());
    request.authors += row.authors();
    request.state = row.state();
    request.tail.assign(row.tail().begin(), row.tail().end());
    const std::vector<TokenId> history = History(request);
    mine.known = static_cast<Position>(history.size());
    Request::Side& other = side(&request, Other(role));
    const auto differs =
        std::mismatch(old.begin(), old.end(), history.begin(), history.end()).first;
    other.known = std::min(other.known, static_cast<Position>(differs - old.begin()));
    if (row.has_finish()) {
      request.finish = row.finish().position();
      request.reason = row.finish().reason();
      request.detail = row.finish().detail();
      return Close(row.request());
    }
    if (row.has_handoff()) {
      ++request.handoffs;
      return SetGrant(row.request(), &request, *FromWire(row.handoff().to()),
                      row.handoff().window(), row.handoff().verify());
    }
    wire::CommandFrame credit = Frame();
    AddCredit(row.request(), request, &credit);
    if (credit.credits_size() > 0) core(role).Apply(credit, now_);
  }

  WorkerCore* const cores_[2];
  uint64_t term_ = 1;
  uint64_t next_key_ = 1;
  absl::Time now_ = absl::UnixEpoch();
  std::map<uint64_t, Request> requests_;
};

}  // namespace tokenrouter
