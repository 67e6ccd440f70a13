#include "services/scheduler/core/grant_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

void GrantWatch::Begin(uint64_t key) {
  const RequestMachine* const request = state_->requests.Find(key);
  if (request == nullptr) return;
  looks_[key] = LookAt(*request);
  state_->timers.Arm({state_->now + state_->options.grant_timeout, key, Timer::Kind::kGrant});
}

void GrantWatch::Timer(RequestMachine* request) {
  const uint64_t key = request->origin().key;
  Look& seen = looks_[key];
  const Look look = LookAt(*request);
  if (!look.granted || !look.SameAs(seen)) {
    seen = look;
  } else if (state_->now - seen.since >= Patience(*request)) {
    return Reopen(request);
  }
  const absl::Time due =
      std::max(state_->now + state_->options.heartbeat, seen.since + Patience(*request));
  state_->timers.Arm({due, key, Timer::Kind::kGrant});
}

GrantWatch::Look GrantWatch::LookAt(const RequestMachine& request) const {
  const Role role = request.grant().role;
  const bool placed = request.phase() == Phase::kRunning || request.phase() == Phase::kReleasable;
  return {.role = role,
          .epoch = request.side(role).epoch,
          .committed = request.history().committed(),
          .granted = placed && !request.credit_blocked(),
          .since = state_->now};
}

absl::Duration GrantWatch::Patience(const RequestMachine& request) const {
  const absl::Duration least = state_->options.grant_timeout;
  const AttachedWorker* const worker =
      state_->directory.Find(request.side(request.grant().role).worker);
  if (worker == nullptr) return least;
  // Long prompts of others may be read first.
  const absl::Duration all = PredictStep(*state_, *worker, worker->ready, worker->uncomputed_ids);
  return std::max(least, all * state_->options.step_factor);
}

void GrantWatch::Reopen(RequestMachine* request) {
  const uint64_t key = request->origin().key;
  const Role role = request->grant().role;
  CloseSide(state_, request, role, ReopenCause::kStalled);
  ++request->mutable_service().reopens;
  if (request->service().reopens > state_->options.max_reopens) {
    return finisher_->Reject(request, RejectReason::kReopenLimit, absl::StatusCode::kUnavailable,
                             absl::StrCat("opened ", request->service().reopens,
                                          " times in a row without a single token"));
  }
  placement_->DispatchGrant(request);
  Begin(key);
}

}  // namespace tokenrouter
