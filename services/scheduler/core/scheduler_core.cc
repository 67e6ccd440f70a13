#include "services/scheduler/core/scheduler_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "services/scheduler/pair_model/pair_report.h"

namespace tokenrouter {

SchedulerCore::SchedulerCore(CoreOptions options, uint64_t term, Parts parts)
    : state_(options, term, parts.output),
      finisher_(&state_),
      placement_(&state_, &finisher_),
      loss_(&state_, &finisher_, &placement_),
      mode_(&state_, &placement_),
      rows_(&state_, &finisher_, &placement_, &mode_),
      grants_(&state_, &finisher_, &placement_),
      release_(&state_),
      leases_(&state_),
      steps_(&state_),
      notices_(&state_),
      gateways_(&state_, &finisher_, &placement_, &rows_, &mode_, &grants_,
                std::move(parts.opening)),
      workers_(&state_, &placement_, &loss_, &rows_, &leases_, &steps_) {
  TR_CHECK(state_.output != nullptr);
  finisher_.on_end = [this, observe = std::move(parts.on_end)](RequestMachine* request) {
    placement_.Ended(request);
    gateways_.Forget(*request);
    grants_.Forget(request->origin().key);
    const int32_t generated = request->history().generated();
    if (request->service().placed) state_.retry.NoteEnd(state_.now);
    if (generated > 0)
      state_.ModelOf(request->origin().pair).mutable_seen().ObserveFinished(generated);
    if (observe) observe(*request, state_.now);
  };
}

void SchedulerCore::OnGatewayFrame(StreamId stream, const wire::GatewayFrame& frame,
                                   absl::Time now) {
  state_.SetNow(now);
  ++state_.counters.frames_in;
  if (frame.has_hello() == gateways_.Known(stream)) {
    OnGatewayGone(stream, now);
    state_.output->CloseGateway(
        stream, absl::FailedPreconditionError("the first frame of a stream, and no other, must "
                                              "carry a hello"));
    return;
  }
  if (frame.has_hello()) {
    state_.PeerCame();
    if (const absl::Status heard = HearTerm(frame.hello().highest_term()); !heard.ok()) {
      state_.output->CloseGateway(stream, heard);
      return;
    }
    gateways_.OnHello(stream, frame.hello());
  }
  if (frame.term() == state_.term) {
    gateways_.OnFrame(stream, frame);
  } else if (!frame.has_hello()) {
    ++state_.counters.dropped[Index(DropReason::kTerm)];
  }
}

void SchedulerCore::OnWorkerFrame(StreamId stream, const wire::WorkerFrame& frame, absl::Time now) {
  state_.SetNow(now);
  ++state_.counters.frames_in;
  if (frame.has_hello() == workers_.Known(stream)) {
    OnWorkerGone(stream, now);
    state_.output->CloseWorker(
        stream, absl::FailedPreconditionError("the first frame of a stream, and no other, must "
                                              "carry a hello"));
    return;
  }
  if (frame.has_hello()) {
    state_.PeerCame();
    if (const absl::Status heard = HearTerm(frame.hello().highest_term()); !heard.ok()) {
      state_.output->CloseWorker(stream, heard);
      return;
    }
    if (const auto pair = workers_.OnHello(stream, frame.hello())) gateways_.PublishPair(*pair);
  } else if (frame.term() == state_.term) {
    workers_.OnFrame(stream, frame);
  } else {
    ++state_.counters.dropped[Index(DropReason::kTerm)];
  }
}

void SchedulerCore::OnGatewayGone(StreamId stream, absl::Time now) {
  state_.SetNow(now);
  gateways_.OnGone(stream);
}

void SchedulerCore::OnWorkerGone(StreamId stream, absl::Time now) {
  state_.SetNow(now);
  const auto pair = workers_.OnGone(stream, state_.options.reattach_grace);
  if (pair) gateways_.PublishPair(*pair);
}

void SchedulerCore::ResetLiveness(absl::Time now) {
  for (const auto& [stream, worker] : state_.directory.workers()) worker->pulse.heard_at = now;
}

void SchedulerCore::OnTick(absl::Time now) {
  state_.SetNow(now);
  CloseDeadWorkers();
  loss_.Judge();
  RunTimers();
  leases_.ExpireDue();
  placement_.AdmitToLargeKvAnywhere();
  notices_.SendDeferral();
}

void SchedulerCore::Flush(absl::Time now) {
  state_.SetNow(now);
  loss_.Judge();
  placement_.AdmitAfterEnds();
  // Large rows may wait for small steps that begin now; released rows begin large steps.
  steps_.StartDue();
  release_.ReleaseRows();
  steps_.StartDue();
  leases_.GrantFree();
  notices_.SendPeerSteps();
  Output* const output = state_.output;
  int sent = state_.outbox.workers.Flush(
      state_.term,
      [output](StreamId stream, wire::CommandFrame* frame) { output->ToWorker(stream, frame); });
  sent += state_.outbox.gateways.Flush(
      state_.term,
      [output](StreamId stream, wire::SchedulerFrame* frame) { output->ToGateway(stream, frame); });
  state_.counters.frames_out += sent;
}

std::vector<PlanInputs> SchedulerCore::WantedPlans(absl::Time now) {
  std::vector<PlanInputs> wanted;
  for (int pair = 0; pair < state_.directory.pairs(); ++pair) {
    state_.ModelOf(pair).ObserveReading(state_.requests.reading(pair));
    auto inputs = state_.ModelOf(pair).Wanted(ActiveRequests(state_, pair), now);
    if (!inputs) continue;
    inputs->pair = pair;
    for (int role = 0; role < kRoles; ++role) {
      const auto& workers = state_.directory.pair(pair).workers[role];
      inputs->workers[role] = std::max(1, static_cast<int>(workers.size()));
    }
    wanted.push_back(*inputs);
  }
  return wanted;
}

void SchedulerCore::AdoptPlan(int pair, const std::optional<PairPlan>& plan, absl::Duration cost,
                              absl::Time now) {
  state_.SetNow(now);
  state_.ModelOf(pair).Adopt(plan, cost, now);
}

void SchedulerCore::CloseDeadWorkers() {
  for (const auto& [stream, why] : workers_.Dead()) {
    const auto pair = workers_.OnGone(stream, absl::ZeroDuration());
    if (pair) gateways_.PublishPair(*pair);
    state_.output->CloseWorker(stream, why);
  }
}

void SchedulerCore::RunTimers() {
  while (const auto timer = state_.timers.PopDue(state_.now)) {
    RequestMachine* const request = state_.requests.Find(timer->request);
    if (request == nullptr) continue;
    switch (timer->kind) {
      case Timer::Kind::kWait:
        placement_.WaitTimer(request);
        break;
      case Timer::Kind::kStall:
        rows_.StallTimer(request);
        break;
      case Timer::Kind::kGrant:
        grants_.Timer(request);
        break;
      case Timer::Kind::kDeadline:
        finisher_.Reject(
            request, RejectReason::kDeadline, absl::StatusCode::kDeadlineExceeded,
            absl::StrCat("the deadline of ", request->spec().deadline_ms(), " ms has passed"));
        break;
    }
  }
}

absl::Status SchedulerCore::HearTerm(uint64_t heard) {
  if (heard <= state_.term) return absl::OkStatus();
  if (heard - state_.term > state_.options.max_term_lead) {
    return absl::FailedPreconditionError(
        absl::StrCat("a peer says that it has heard term ", heard, "; this scheduler's is ",
                     state_.term, ", and more than ", state_.options.max_term_lead,
                     " beyond it is no clock's fault: check both clocks and restart that peer"));
  }
  RaiseTerm(heard);
  return absl::OkStatus();
}

void SchedulerCore::RaiseTerm(uint64_t heard) {
  const absl::Status why = absl::AbortedError(absl::StrCat(
      "a peer has heard term ", heard, ": term ", state_.term, " ends; connect again"));
  gateways_.CloseAll(why);
  workers_.CloseAll(why);
  state_.requests.Clear();
  placement_.Clear();
  grants_.Clear();
  state_.term = heard + 1;
  state_.term_since = state_.now;
  state_.pools_seen.clear();
}

void SchedulerCore::FillState(absl::Time now, wire::GetStateReply* reply) const {
  reply->set_term(state_.term);
  for (const auto& [stream, worker] : state_.directory.workers()) {
    wire::WorkerState* const out = reply->add_workers();
    out->set_worker_id(worker->hello.worker_id());
    out->set_role(worker->hello.role());
    out->set_pair(worker->hello.pair());
    out->set_model(worker->hello.model());
    out->set_device_key(worker->hello.device_key());
    out->set_sequences(worker->sequences());
    out->set_free_blocks(worker->free_blocks);
    out->set_total_blocks(worker->hello.total_blocks());
    out->set_resident_blocks(worker->kv.blocks_in_use());
    out->set_since_heartbeat_seconds(absl::ToDoubleSeconds(now - worker->pulse.heard_at));
    out->set_steps(worker->steps);
  }
  for (int pair = 0; pair < state_.directory.pairs(); ++pair) {
    *reply->add_pairs() = gateways_.Status(pair);
    wire::PairModel* const model = reply->add_models();
    model->set_pair(state_.directory.pair(pair).name);
    FillPairModel(state_.ModelOf(pair), state_.requests.live(pair), now, model);
    model->set_service_mode(state_.ModeOf(pair) == ServiceMode::kRouted ? "routed" : "large_alone");
  }
}

absl::Duration SchedulerCore::OldestLargeWait(absl::Time now) const {
  absl::Duration oldest = absl::ZeroDuration();
  state_.requests.ForEach([&](const RequestMachine& request) {
    const bool waits =
        request.grant().role == Role::kLarge &&
        (request.phase() == Phase::kWaiting || request.phase() == Phase::kReleasable);
    if (waits) oldest = std::max(oldest, now - request.phase().since());
  });
  return oldest;
}

}  // namespace tokenrouter
