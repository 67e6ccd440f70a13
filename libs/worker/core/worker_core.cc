#include "libs/worker/core/worker_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
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
      cache_(engine, options_.prefix_cache),
      lease_(!options_.device_key.empty()) {
  TR_CHECK(options_.max_step_tokens > kMaxVerify) << options_.max_step_tokens;
  TR_CHECK(options_.max_rows > 0 && options_.max_sequences > 0);
  limits_.role = options_.role;
  limits_.context_limit = engine_->info().context_limit;
  limits_.usable_ids = engine_->info().usable_ids;
  if (options_.role == Role::kLarge || lease_.needed()) return;
  deferral_.emplace(options_.max_rows);
  for (const wire::StepSample& sample : options_.samples) {
    deferral_->Observe(sample.rows(), sample.new_ids(), absl::Microseconds(sample.elapsed_us()));
  }
}

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
  for (const auto& [id, sequence] : table_.all()) {
    wire::HeldSequence& held = *hello.add_held();
    held.set_request_id(sequence->request_id);
    held.set_choice(sequence->choice);
    held.set_length(sequence->track.size());
  }
  return frame;
}

void WorkerCore::Detach() {
  attached_ = false;
  lease_.Drop();
  deferred_until_ = absl::InfiniteFuture();
  if (deferral_.has_value()) deferral_->Detach();
  arrived_.clear();
  pending_.Clear();
  lease_wanted_since_ = absl::InfiniteFuture();
  free_unclaimed_at_ = absl::InfiniteFuture();
  if (!step_runs_) table_.UnclaimAll();
}

std::optional<PlannedStep> WorkerCore::Plan(absl::Time now) {
  if (step_runs_ || !attached_) return std::nullopt;
  FreeUnclaimed(now);
  WatchLeaseWait(now);
  if (!lease_.MayCompute(now)) return std::nullopt;
  RefuseTooLarge();
  held_back_.clear();
  looked_up_.clear();
  std::vector<SequenceState*> sequences;
  BatchPlan plan = PlanWithinBlocks(&sequences);
  if (Defers(sequences, plan, now)) return std::nullopt;
  if (plan.rows.empty()) return std::nullopt;
  // Each round starts or holds back somebody, so the loop ends.
  while (StartFromPrefixes(sequences, plan)) plan = PlanWithinBlocks(&sequences);
  if (plan.rows.empty() && !held_back_.empty()) {
    // Those that they wait for cannot go on after all.
    held_back_.clear();
    plan = PlanWithinBlocks(&sequences);
  }
  if (plan.rows.empty()) return std::nullopt;
  step_runs_ = true;
  PlannedStep step = MakeStep(sequences, plan, now);
  MakeRoomFor(step.batch);
  return step;
}

absl::Status WorkerCore::Execute(PlannedStep* step) {
  step->status = engine_->Step(step->batch, &step->result);
  return step->status;
}

wire::WorkerFrame WorkerCore::Complete(PlannedStep step, absl::Time now) {
  TR_CHECK(step_runs_);
  step_runs_ = false;
  ++counters_.steps;
  wire::WorkerFrame frame;
  steps_alone_ = std::max<int64_t>(0, steps_alone_ - 1);
  if (!attached_) table_.UnclaimAll();  // The stream went away during the step.
  if (step.status.ok()) {
    ReportRows(&step, &frame, now);
    if (deferral_.has_value()) {
      deferral_->Observe(static_cast<int>(step.batch.rows.size()), step.batch.new_ids(),
                         now - step.started);
    }
  } else {
    HandleFailedStep(step, &frame);
  }
  std::deque<Arrived> arrived;
  arrived.swap(arrived_);
  for (const Arrived& command : arrived) ApplyNow(command.frame, now, command.at);
  wire::StepReport& report = *frame.mutable_step();
  report.set_seq(counters_.steps);
  report.set_rows(static_cast<int32_t>(step.batch.rows.size()));
  report.set_new_ids(step.batch.new_ids());
  report.set_elapsed_us(absl::ToInt64Microseconds(now - step.started));
  report.set_predicted_us(absl::ToInt64Microseconds(step.predicted));
  report.set_ready(Ready());
  report.set_free_blocks(free_blocks());
  report.set_background_ids(step.background_ids);
  MovePendingTo(&frame, now);
  return frame;
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
  if (leaving_ && !told_leaving_) {
    frame->set_draining(true);
    told_leaving_ = true;
  }
  const int32_t ready = Ready();
  if (!lease_.IsOver(ready, now)) return;
  frame->mutable_lease_return()->set_lease_id(lease_.lease_id());
  frame->mutable_lease_return()->set_ready(ready);
  lease_.Drop();
}

absl::Time WorkerCore::NextDeadline() const {
  return std::min({lease_.expires(), free_unclaimed_at_, deferred_until_});
}

int32_t WorkerCore::Ready() const {
  int32_t ready = 0;
  for (const auto& [id, sequence] : table_.all()) ready += sequence->ready(options_.role);
  return ready;
}

int32_t WorkerCore::Waiting() const {
  int32_t waiting = 0;
  for (const auto& [id, sequence] : table_.all()) {
    waiting += sequence->grant.has_value() && !sequence->ready(options_.role);
  }
  return waiting;
}

void WorkerCore::WatchLeaseWait(absl::Time now) {
  const bool wanting = lease_.needed() && !lease_.held() && Ready() > 0;
  if (lease_wanted_since_ != absl::InfiniteFuture() && !wanting) {
    counters_.lease_wait += now - lease_wanted_since_;
    lease_wanted_since_ = absl::InfiniteFuture();
  } else if (wanting && lease_wanted_since_ == absl::InfiniteFuture()) {
    lease_wanted_since_ = now;
  }
}

// ---- after the step ----

void WorkerCore::ReportRows(PlannedStep* step, wire::WorkerFrame* frame, absl::Time now) {
  TR_CHECK(step->result.choices.size() == step->rows.size());
  int32_t handoffs = 0;
  for (size_t i = 0; i < step->rows.size(); ++i) {
    SequenceState* sequence = table_.FindById(step->rows[i].sequence);
    TR_CHECK(sequence != nullptr);
    sequence->last_step = counters_.steps;
    counters_.catch_up_ids += step->batch.rows[i].new_ids.size() - step->rows[i].choices;
    if (step->rows[i].choices == 0 || !sequence->claimed) {
      Settle(*sequence);
      continue;
    }
    RowOutcome outcome = ResolveRow(step->result.choices[i], limits_, sequence);
    cache_.Cut(sequence->id, outcome.valid_kv);
    Settle(*sequence);
    sequence->ready_since = sequence->ready(options_.role) ? now : absl::InfiniteFuture();
    counters_.committed += outcome.committed;
    counters_.handoffs += outcome.handed_off;
    handoffs += outcome.handed_off;
    // A tentative token that stays here is nobody else's business yet.
    if (outcome.committed > 0 || outcome.handed_off || outcome.finished ||
        outcome.report.credit_blocked()) {
      outcome.report.set_cached_ids(std::exchange(sequence->cached_ids, 0));
      sequence->told_cached = true;
      *frame->add_rows() = std::move(outcome.report);
    }
  }
  lease_.CountHandoffs(handoffs);
}

void WorkerCore::HandleFailedStep(const PlannedStep& step, wire::WorkerFrame* frame) {
  ++counters_.engine_errors;
  if (step.status.code() == absl::StatusCode::kResourceExhausted) {
    // The engine counts blocks better than the plan did: make room and let the next plan try.
    if (cache_.Clear()) return;
    SequenceState* oldest = table_.FindById(step.rows[0].sequence);
    for (const PlannedStep::Row& row : step.rows) {
      if (row.sequence < oldest->id) oldest = table_.FindById(row.sequence);
    }
    if (Preempt(oldest)) return;
  }
  if (step.rows.size() > 1) {
    steps_alone_ = static_cast<int64_t>(step.rows.size());
    return;
  }
  for (const PlannedStep::Row& row : step.rows) {
    SequenceState* sequence = table_.FindById(row.sequence);
    if (!sequence->claimed) continue;
    End(sequence);
    cache_.Drop(sequence->id);
    *frame->add_rows() =
        FinishReport(*sequence, FinishReason::kError,
                     absl::StrCat("engine step failed: ", std::string(step.status.message())));
  }
}

}  // namespace tokenrouter
