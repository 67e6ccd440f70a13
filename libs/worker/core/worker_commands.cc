// The part of WorkerCore that takes commands.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/worker/core/worker_core.h"

namespace tokenrouter {
namespace {

// Sequences beyond the announced number that are still taken: closes may be under way.
constexpr int32_t kSequenceSlack = 2;

}  // namespace

void WorkerCore::Apply(const wire::CommandFrame& frame, absl::Time now, absl::Time arrived) {
  if (step_runs_) {
    arrived_.push_back({frame, arrived});
    return;
  }
  ApplyNow(frame, now, arrived);
}

void WorkerCore::ApplyNow(const wire::CommandFrame& frame, absl::Time now, absl::Time arrived) {
  if (frame.has_attached() && frame.term() >= term_) ApplyAttached(frame, now);
  if (!attached_ || frame.term() != term_) {
    ++counters_.stale_frames;
    return;
  }
  for (const wire::Open& open : frame.opens()) ApplyOpenFrame(open);
  for (const wire::Extend& extend : frame.extends()) ApplyExtendFrame(extend);
  for (const uint64_t request : frame.releases()) {
    SequenceState* sequence = table_.Find(request);
    if (sequence != nullptr && sequence->grant.has_value()) sequence->released = true;
  }
  for (const wire::Credit& credit : frame.credits()) ApplyCredit(credit);
  for (const wire::Close& close : frame.closes()) ApplyCloseFrame(close);
  if (frame.drain()) draining_ = true;
  if (deferral_.has_value()) {
    // Rows of this frame came back from a step before the one that it may tell about.
    NoteReady(now);
    if (frame.has_deferral()) deferral_->SetDeferral(frame.deferral());
    if (frame.has_peer_step()) deferral_->SetPeerStep(frame.peer_step(), arrived);
  }
  WatchLeaseWait(now);
  if (frame.has_lease() && lease_.needed()) lease_.Grant(frame.lease(), now);
  WatchLeaseWait(now);
}

void WorkerCore::ApplyAttached(const wire::CommandFrame& frame, absl::Time now) {
  const wire::Attached& attached = frame.attached();
  attached_ = true;
  draining_ = false;
  told_leaving_ = false;
  term_ = frame.term();
  read_ahead_ = attached.background_prefill();
  limits_.usable_ids = engine_->info().usable_ids;
  if (attached.usable_ids() > 0) {
    limits_.usable_ids = std::min(limits_.usable_ids, attached.usable_ids());
  }
  limits_.stop_ids.assign(attached.stop_ids().begin(), attached.stop_ids().end());
  lease_.Reset();
  pending_.Clear();
  table_.UnclaimAll();
  free_unclaimed_at_ = now + absl::Milliseconds(attached.keep_unclaimed_ms());
}

void WorkerCore::ApplyOpenFrame(const wire::Open& open) {
  const SequenceState* held = table_.FindHeld(open.spec().request_id(), open.spec().choice());
  if (held != nullptr && held->claimed && held->request == open.request() &&
      open.epoch() <= held->epoch) {
    return;  // A duplicate of what is open already.
  }
  SequenceState* same_key = table_.Find(open.request());
  if (same_key != nullptr && same_key != held) Forget(same_key);
  const bool has_capacity = held != nullptr || MakeRoomForSequence();
  SequenceState* sequence =
      table_.Claim(open.request(), open.spec().request_id(), open.spec().choice());
  sequence->last_step = counters_.steps;
  // A name means nothing beyond its tenant.
  if (sequence->tenant != open.spec().tenant()) cache_.Cut(sequence->id, 0);
  Position unchanged = 0;
  const absl::Status status = ApplyOpen(open, limits_, sequence, &unchanged);
  cache_.Cut(sequence->id, unchanged);
  if (!status.ok()) return Refuse(sequence, std::string(status.message()));
  if (!has_capacity) {
    return Refuse(sequence, absl::StrCat("this worker holds ", table_.size() - 1,
                                         " sequences; max_sequences is ", options_.max_sequences));
  }
  if (sequence->credit_blocked()) *pending_.add_rows() = ParkedReport(*sequence);
}

void WorkerCore::ApplyExtendFrame(const wire::Extend& extend) {
  SequenceState* sequence = table_.Find(extend.request());
  if (sequence != nullptr && extend.epoch() < sequence->epoch) return;
  const Position have = sequence == nullptr ? 0 : sequence->track.size();
  if (sequence == nullptr || extend.base() > have || extend.base() < 0) {
    ++counters_.need_ids;
    wire::NeedIds& need = *pending_.add_need_ids();
    need.set_request(extend.request());
    need.set_epoch(extend.epoch());
    need.set_have(have);
    return;
  }
  cache_.Cut(sequence->id, extend.base());
  const absl::Status status = ApplyExtend(extend, limits_, sequence);
  if (!status.ok()) return Refuse(sequence, std::string(status.message()));
  if (sequence->credit_blocked()) *pending_.add_rows() = ParkedReport(*sequence);
}

void WorkerCore::ApplyCredit(const wire::Credit& credit) {
  SequenceState* sequence = table_.Find(credit.request());
  if (sequence == nullptr) return;
  sequence->credit = credit.until() == 0 ? 0 : std::max(sequence->credit, credit.until());
}

void WorkerCore::ApplyCloseFrame(const wire::Close& close) {
  SequenceState* sequence = table_.Find(close.request());
  if (sequence != nullptr) {
    if (close.epoch() < sequence->epoch) return;  // It was opened again since.
    Forget(sequence);
  }
  pending_.add_closed(close.request());
}

void WorkerCore::Refuse(SequenceState* sequence, const std::string& why) {
  ++counters_.refused;
  End(sequence);
  *pending_.add_rows() = FinishReport(*sequence, FinishReason::kError, why);
}

bool WorkerCore::MakeRoomForSequence() {
  const auto limit = static_cast<size_t>(options_.max_sequences) * kSequenceSlack;
  if (table_.size() < limit) return true;
  for (const auto& [id, sequence] : table_.all()) {
    if (sequence->claimed) continue;
    Forget(sequence.get());
    return true;
  }
  return false;
}

void WorkerCore::FreeUnclaimed(absl::Time now) {
  if (now < free_unclaimed_at_) return;
  free_unclaimed_at_ = absl::InfiniteFuture();
  std::vector<SequenceState*> unclaimed;
  for (const auto& [id, sequence] : table_.all()) {
    if (!sequence->claimed) unclaimed.push_back(sequence.get());
  }
  for (SequenceState* sequence : unclaimed) Forget(sequence);
}

void WorkerCore::End(SequenceState* sequence) {
  sequence->grant.reset();
  sequence->ended = true;
}

void WorkerCore::Forget(SequenceState* sequence) {
  Settle(*sequence);
  cache_.Close(sequence->id);
  table_.Erase(sequence);
}

void WorkerCore::Settle(const SequenceState& sequence) {
  cache_.Settle(sequence.id, sequence.tenant,
                sequence.track.ids().first(sequence.track.committed()));
}

}  // namespace tokenrouter
