#include "libs/worker/core/worker_core.h"

#include <algorithm>
#include <utility>

#include "libs/routing/wire_types.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

bool HasContent(const wire::WorkerFrame& frame) {
  return frame.rows_size() > 0 || frame.need_ids_size() > 0 || frame.closed_size() > 0 ||
         frame.has_lease_return() || frame.draining();
}

}  // namespace

WorkerCore::WorkerCore(WorkerCoreOptions options, Engine* engine)
    : options_(std::move(options)),
      engine_(engine),
      lease_(!options_.device_key.empty()),
      store_(options_.role, engine, options_.prefix_cache),
      commands_(options_.max_sequences, &limits_, &store_, &counters_, &pending_),
      builder_(&options_, engine, &lease_, &store_, &counters_),
      reporter_(options_.role, &limits_, &store_, &counters_) {
  TR_CHECK(options_.max_step_tokens > kMaxVerify) << options_.max_step_tokens;
  TR_CHECK(options_.max_rows > 0 && options_.max_sequences > 0);
  limits_.role = options_.role;
  limits_.context_limit = engine_->info().context_limit;
  limits_.usable_ids = engine_->info().usable_ids;
  if (options_.role == Role::kSmall && !lease_.needed()) {
    deferral_.emplace(options_, &store_, &counters_);
  }
}

// ---- the stream ----

wire::WorkerFrame WorkerCore::Hello() const {
  const EngineInfo& info = engine_->info();
  wire::WorkerFrame frame;
  wire::WorkerHello& hello = *frame.mutable_hello();
  hello.set_worker_id(options_.worker_id);
  hello.set_role(ToWire(options_.role));
  hello.set_pair(options_.pair);
  hello.set_protocol_version(kProtocolVersion);
  hello.set_highest_term(term_);
  hello.set_tokenizer_fingerprint(options_.tokenizer_fingerprint);
  hello.set_usable_ids(info.usable_ids);
  hello.mutable_eos_ids()->Add(options_.eos_ids.begin(), options_.eos_ids.end());
  hello.set_model(info.model_name);
  hello.set_numerics_class(info.numerics_class);
  hello.set_device_key(options_.device_key);
  hello.set_total_blocks(info.total_blocks);
  hello.set_block_size(info.block_size);
  hello.set_context_limit(info.context_limit);
  hello.set_max_sequences(options_.max_sequences);
  hello.set_max_step_ids(options_.max_step_tokens);
  if (options_.max_step < absl::InfiniteDuration()) {
    hello.set_max_step_us(absl::ToInt64Microseconds(options_.max_step));
  }
  hello.mutable_samples()->Assign(options_.samples.begin(), options_.samples.end());
  for (const auto& [id, sequence] : store_.table().all()) {
    wire::HeldSequence& held = *hello.add_held();
    held.set_request_id(sequence->request_id);
    held.set_choice(sequence->choice);
    held.set_length(sequence->track.size());
  }
  return frame;
}

void WorkerCore::Apply(const wire::CommandFrame& frame, absl::Time now,
                       std::optional<absl::Time> arrived) {
  if (step_runs_) {
    arrived_.push_back({frame, arrived.value_or(now)});
    return;
  }
  ApplyNow(frame, now, arrived.value_or(now));
}

void WorkerCore::ApplyNow(const wire::CommandFrame& frame, absl::Time now, absl::Time arrived) {
  if (frame.has_attached() && frame.term() >= term_) ApplyAttached(frame, now);
  if (!attached_ || frame.term() != term_) {
    ++counters_.stale_frames;
    return;
  }
  commands_.ApplyRequests(frame);
  if (frame.drain()) draining_ = true;
  if (deferral_.has_value()) deferral_->OnFrame(frame, now, arrived);
  WatchLeaseWait(now);
  if (frame.has_lease() && lease_.needed()) lease_.Grant(frame.lease(), now);
  WatchLeaseWait(now);
}

void WorkerCore::ApplyAttached(const wire::CommandFrame& frame, absl::Time now) {
  const wire::Attached& attached = frame.attached();
  attached_ = true;
  draining_ = false;
  said_leaving_ = false;
  term_ = frame.term();
  background_prefill_ = attached.background_prefill();
  limits_.usable_ids = engine_->info().usable_ids;
  if (attached.usable_ids() > 0) {
    limits_.usable_ids = std::min(limits_.usable_ids, attached.usable_ids());
  }
  limits_.stop_ids.assign(attached.stop_ids().begin(), attached.stop_ids().end());
  lease_.Reset();
  pending_.Clear();
  store_.table().UnclaimAll();
  free_unclaimed_at_ = now + absl::Milliseconds(attached.keep_unclaimed_ms());
}

void WorkerCore::Detach() {
  attached_ = false;
  lease_.Drop();
  if (deferral_.has_value()) deferral_->Detach();
  arrived_.clear();
  pending_.Clear();
  lease_wanted_since_ = absl::InfiniteFuture();
  free_unclaimed_at_ = absl::InfiniteFuture();
  if (!step_runs_) store_.table().UnclaimAll();
}

std::optional<wire::WorkerFrame> WorkerCore::TakePending(absl::Time now) {
  if (step_runs_) return std::nullopt;
  FreeUnclaimed(now);
  if (!attached_) return std::nullopt;
  wire::WorkerFrame frame;
  MovePendingTo(&frame, now);
  if (!HasContent(frame)) return std::nullopt;
  return frame;
}

void WorkerCore::MovePendingTo(wire::WorkerFrame* frame, absl::Time now) {
  WatchLeaseWait(now);
  frame->MergeFrom(pending_);
  pending_.Clear();
  frame->set_term(term_);
  if (leaving_ && !said_leaving_) {
    frame->set_draining(true);
    said_leaving_ = true;
  }
  const int32_t ready = store_.Ready();
  if (!lease_.IsOver(ready, now)) return;
  frame->mutable_lease_return()->set_lease_id(lease_.lease_id());
  frame->mutable_lease_return()->set_ready(ready);
  lease_.Drop();
}

// ---- steps ----

std::optional<PlannedStep> WorkerCore::Plan(absl::Time now) {
  if (step_runs_ || !attached_) return std::nullopt;
  FreeUnclaimed(now);
  WatchLeaseWait(now);
  if (!lease_.MayCompute(now)) return std::nullopt;
  for (const auto& [sequence, why] : builder_.FindTooLarge()) commands_.Refuse(sequence, why);
  StepPlan plan = builder_.Plan(background_prefill_, reporter_.alone());
  if (deferral_.has_value() && deferral_->Defers(plan, reporter_.alone(), now)) return std::nullopt;
  if (plan.batch.rows.empty()) return std::nullopt;
  builder_.StartFromPrefixes(&plan);
  if (plan.batch.rows.empty()) return std::nullopt;
  step_runs_ = true;
  return builder_.Make(plan, now);
}

absl::Status WorkerCore::Execute(PlannedStep* step) {
  step->status = engine_->Step(step->batch, &step->result);
  return step->status;
}

wire::WorkerFrame WorkerCore::Complete(PlannedStep step, absl::Time now) {
  TR_CHECK(step_runs_);
  step_runs_ = false;
  reporter_.CountStep();
  wire::WorkerFrame frame;
  if (!attached_) store_.table().UnclaimAll();  // The stream went away during the step.
  if (step.status.ok()) {
    lease_.CountHandoffs(reporter_.Report(step, now, &frame));
    if (deferral_.has_value()) deferral_->Observe(step, now - step.started);
  } else {
    reporter_.Recover(step, &frame);
  }
  std::deque<Arrived> arrived;
  arrived.swap(arrived_);
  for (const Arrived& command : arrived) ApplyNow(command.frame, now, command.at);
  FillStepReport(step, now, frame.mutable_step());
  MovePendingTo(&frame, now);
  return frame;
}

void WorkerCore::FillStepReport(const PlannedStep& step, absl::Time now,
                                wire::StepReport* report) const {
  report->set_seq(counters_.steps);
  report->set_rows(static_cast<int32_t>(step.batch.rows.size()));
  report->set_new_ids(step.batch.new_ids());
  report->set_elapsed_us(absl::ToInt64Microseconds(now - step.started));
  report->set_predicted_us(absl::ToInt64Microseconds(step.predicted));
  report->set_ready(store_.Ready());
  report->set_free_blocks(store_.free_blocks());
  report->set_background_ids(step.background_ids);
}

// ---- time ----

absl::Time WorkerCore::NextDeadline() const {
  const absl::Time deferred =
      deferral_.has_value() ? deferral_->deferred_until() : absl::InfiniteFuture();
  return std::min({lease_.expires(), free_unclaimed_at_, deferred});
}

void WorkerCore::FreeUnclaimed(absl::Time now) {
  if (now < free_unclaimed_at_) return;
  free_unclaimed_at_ = absl::InfiniteFuture();
  store_.ForgetUnclaimed();
}

void WorkerCore::WatchLeaseWait(absl::Time now) {
  const bool wanting = lease_.needed() && !lease_.held() && store_.Ready() > 0;
  if (lease_wanted_since_ != absl::InfiniteFuture() && !wanting) {
    counters_.lease_wait += now - lease_wanted_since_;
    lease_wanted_since_ = absl::InfiniteFuture();
  } else if (wanting && lease_wanted_since_ == absl::InfiniteFuture()) {
    lease_wanted_since_ = now;
  }
}

}  // namespace tokenrouter
