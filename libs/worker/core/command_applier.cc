#include "libs/worker/core/command_applier.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "libs/worker/core/row_outcome.h"

namespace tokenrouter {
namespace {

// Sequences beyond the announced number that are still taken: closes may be under way.
constexpr int32_t kSequenceSlack = 2;

}  // namespace

void CommandApplier::ApplyRequests(const wire::CommandFrame& frame) {
  for (const wire::Open& open : frame.opens()) Open(open);
  for (const wire::Extend& extend : frame.extends()) Extend(extend);
  for (const uint64_t request : frame.releases()) Release(request);
  for (const wire::Credit& credit : frame.credits()) Credit(credit);
  for (const wire::Close& close : frame.closes()) Close(close);
}

void CommandApplier::Refuse(SequenceState* sequence, const std::string& why) {
  ++counters_->refused;
  sequence->End();
  *pending_->add_rows() = FinishReport(*sequence, FinishReason::kError, why);
}

void CommandApplier::Open(const wire::Open& open) {
  SequenceTable& table = store_->table();
  const SequenceState* held = table.FindHeld(open.spec().request_id(), open.spec().choice());
  if (held != nullptr && held->claimed && held->request == open.request() &&
      open.epoch() <= held->epoch) {
    return;  // A duplicate of what is open already.
  }
  SequenceState* same_key = table.Find(open.request());
  if (same_key != nullptr && same_key != held) store_->Forget(same_key);
  const bool has_space = held != nullptr || HasSpace();
  SequenceState* sequence =
      table.Claim(open.request(), open.spec().request_id(), open.spec().choice());
  sequence->last_step = counters_->steps;
  // A name means nothing beyond its tenant.
  if (sequence->tenant != open.spec().tenant()) store_->cache().Cut(sequence->id, 0);
  Position unchanged = 0;
  const absl::Status status = ApplyOpen(open, *limits_, sequence, &unchanged);
  store_->cache().Cut(sequence->id, unchanged);
  if (!status.ok()) return Refuse(sequence, std::string(status.message()));
  if (!has_space) {
    return Refuse(sequence, absl::StrCat("this worker holds ", store_->size() - 1,
                                         " sequences; max_sequences is ", max_sequences_));
  }
  if (sequence->credit_blocked()) *pending_->add_rows() = CreditBlockedReport(*sequence);
}

void CommandApplier::Extend(const wire::Extend& extend) {
  SequenceState* sequence = store_->table().Find(extend.request());
  if (sequence != nullptr && extend.epoch() < sequence->epoch) return;
  const Position have = sequence == nullptr ? 0 : sequence->track.size();
  if (sequence == nullptr || extend.base() > have || extend.base() < 0) {
    ++counters_->need_ids;
    wire::NeedIds& need = *pending_->add_need_ids();
    need.set_request(extend.request());
    need.set_epoch(extend.epoch());
    need.set_have(have);
    return;
  }
  store_->cache().Cut(sequence->id, extend.base());
  const absl::Status status = ApplyExtend(extend, *limits_, sequence);
  if (!status.ok()) return Refuse(sequence, std::string(status.message()));
  if (sequence->credit_blocked()) *pending_->add_rows() = CreditBlockedReport(*sequence);
}

void CommandApplier::Release(uint64_t request) {
  SequenceState* sequence = store_->table().Find(request);
  if (sequence != nullptr && sequence->grant.has_value()) sequence->released = true;
}

void CommandApplier::Credit(const wire::Credit& credit) {
  SequenceState* sequence = store_->table().Find(credit.request());
  if (sequence == nullptr) return;
  sequence->credit = credit.until() == 0 ? 0 : std::max(sequence->credit, credit.until());
}

void CommandApplier::Close(const wire::Close& close) {
  SequenceState* sequence = store_->table().Find(close.request());
  if (sequence != nullptr) {
    if (close.epoch() < sequence->epoch) return;  // It was opened again since.
    store_->Forget(sequence);
  }
  pending_->add_closed(close.request());
}

bool CommandApplier::HasSpace() {
  const auto limit = static_cast<size_t>(max_sequences_) * kSequenceSlack;
  return store_->size() < limit || store_->ForgetOneUnclaimed();
}

}  // namespace tokenrouter
