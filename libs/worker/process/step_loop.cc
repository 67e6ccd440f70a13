#include "libs/worker/process/step_loop.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/telemetry/log.h"
#include "libs/timing/redial_wait.h"

namespace tokenrouter {
namespace {

void LogOpened(const wire::Open& open) {
  LogInfo("request_opened", {{"request_id", open.spec().request_id()},
                             {"epoch", open.epoch()},
                             {"ids", open.ids_size()},
                             {"has_grant", open.has_grant()}});
}

}  // namespace

void StepLoop::Run() {
  bool worked = false;
  while (!stopping_.load()) {
    TakeInbox(worked ? absl::ZeroDuration() : IdleTime());
    CheckDrain();
    if (!connected_ && parts_.clock->Now() >= dial_at_ && !stopping_.load()) Dial();
    worked = Work();
    Observe();
  }
  parts_.gauges->LoopSleeps();  // For good.
  parts_.client->Disconnect();
}

void StepLoop::BeginDrain(absl::Duration patience) {
  drain_ms_ = absl::ToInt64Milliseconds(patience);
  parts_.inbox->Wake();
}

void StepLoop::Stop() {
  stopping_ = true;
  parts_.inbox->Wake();
}

absl::Duration StepLoop::IdleTime() const {
  const absl::Time dial = connected_ ? absl::InfiniteFuture() : dial_at_;
  const absl::Time next = std::min({parts_.core->NextDeadline(), dial, drain_deadline_});
  return std::max(absl::ZeroDuration(), next - parts_.clock->Now());
}

void StepLoop::TakeInbox(absl::Duration timeout) {
  if (timeout > absl::ZeroDuration()) parts_.gauges->LoopSleeps();
  AttachInbox::Content content = parts_.inbox->Take(timeout);
  parts_.gauges->LoopRuns(parts_.clock->Now());
  for (AttachInbox::Frame& frame : content.frames) {
    for (const wire::Open& open : frame.command.opens()) LogOpened(open);
    parts_.core->Apply(frame.command, parts_.clock->Now(), frame.arrived);
    frame.credit = nullptr;
  }
  const bool attached = parts_.core->attached();
  if (attached && !was_attached_) {
    failures_ = 0;
    last_failure_.clear();
    if (drain_ms_.load() < 0) parts_.phase->SetReady();
    LogInfo("attached", {{"term", parts_.core->term()},
                         {"role", RoleName(parts_.core->options().role)},
                         {"pair", parts_.core->options().pair}});
  }
  was_attached_ = attached;
  if (content.ended.has_value()) OnLost(*content.ended);
}

void StepLoop::OnLost(const absl::Status& why) {
  if (was_attached_) parts_.metrics->CountReconnect();
  was_attached_ = false;
  connected_ = false;
  parts_.core->Detach();
  dial_at_ = parts_.clock->Now() + RedialWait(parts_.core->options().worker_id, failures_++);
  parts_.phase->SetNotReady(absl::StrCat("connecting to the scheduler: ", why.ToString()));
  std::string failure = why.ToString();
  if (failure == last_failure_) return;
  last_failure_ = std::move(failure);
  LogWarning("scheduler_lost", {{"status", why}});
}

void StepLoop::Dial() {
  connected_ = true;
  parts_.client->Connect(parts_.core->Hello());
}

bool StepLoop::Work() {
  const absl::Time now = parts_.clock->Now();
  // Updates do not wait for the end of a step: a slot that is free again, ids that are missing, a
  // row that became credit-blocked.
  const bool said = SendPending(now);
  std::optional<PlannedStep> step = parts_.core->Plan(now);
  if (step.has_value()) {
    RunStep(*std::move(step));
    return true;
  }
  // A plan that finds nothing may give back the lease or refuse a request.
  return SendPending(now) || said;
}

bool StepLoop::SendPending(absl::Time now) {
  std::optional<wire::WorkerFrame> said = parts_.core->TakePending(now);
  if (!said.has_value()) return false;
  parts_.client->Send(*std::move(said));
  return true;
}

void StepLoop::RunStep(PlannedStep step) {
  parts_.gauges->StepStarts(parts_.clock->Now(), step.predicted);
  const absl::Status status = parts_.core->Execute(&step);
  parts_.gauges->StepEnded();
  if (!status.ok()) LogError("step_failed", {{"status", status}, {"rows", step.rows.size()}});
  wire::WorkerFrame frame = parts_.core->Complete(std::move(step), parts_.clock->Now());
  parts_.metrics->ObserveStep(frame);
  parts_.client->Send(std::move(frame));
}

void StepLoop::CheckDrain() {
  const int64_t drain_ms = drain_ms_.load();
  if (drain_ms < 0 && !parts_.core->draining()) return;
  const absl::Time now = parts_.clock->Now();
  if (drain_deadline_ == absl::InfiniteFuture() && drain_ms >= 0) {
    drain_deadline_ = now + absl::Milliseconds(drain_ms);
    parts_.core->BeginDrain();
    parts_.phase->SetNotReady("draining");
    LogInfo("draining", {{"sequences", parts_.core->store().size()}});
  }
  // When only the scheduler asked for it, stay attached and idle until the process is ended.
  if (drain_ms < 0) return;
  const bool idle = !parts_.core->attached() || parts_.core->store().size() == 0;
  if (idle || now >= drain_deadline_) stopping_ = true;
}

void StepLoop::Observe() {
  parts_.metrics->ObserveCore(*parts_.core, parts_.engine->info().total_blocks);
  parts_.gauges->SetLoad(parts_.core->counters().steps, parts_.core->store().free_blocks(),
                         static_cast<int32_t>(parts_.core->store().size()));
}

}  // namespace tokenrouter
