#include "services/scheduler/request/request_machine.h"

#include <algorithm>
#include <utility>

#include "libs/routing/algorithm.h"
#include "libs/routing/wire_types.h"
#include "libs/status/check.h"
#include "services/scheduler/request/catch_up.h"
#include "services/scheduler/request/credit.h"

namespace tokenrouter {
namespace {

// Rows: from; columns: to. The table of the Phase enum.
constexpr bool kLegal[kPhases][kPhases] = {
    /* waiting */ {true, true, true, true, true},
    /* held */ {true, true, true, true, true},
    /* releasable */ {true, false, true, true, true},
    /* running */ {true, true, true, true, true},
    /* ended */ {false, false, false, false, false},
};

// A reopen repeats the rest of the decode grant, not the grant as it was given.
void CountDown(int32_t written, wire::DecodeGrant* terms) {
  terms->set_verify(0);
  if (terms->window().kind() != wire::Window::KIND_TOKENS) return;
  terms->mutable_window()->set_tokens(std::max(1, terms->window().tokens() - written));
}

}  // namespace

RequestMachine::RequestMachine(Origin origin, wire::GenerationSpec spec, TokenHistory history,
                               std::string state, DecodeGrant grant, Position credit_window)
    : origin_(origin),
      spec_(std::move(spec)),
      credit_window_(credit_window),
      history_(std::move(history)),
      state_(std::move(state)),
      grant_(std::move(grant)),
      acked_(history_.prompt_length()),
      phase_since_(origin.submitted_at),
      committed_at_(origin.submitted_at),
      stalled_since_(origin.submitted_at) {
  TR_CHECK(history_.tail().empty());
}

bool RequestMachine::WellFormed(const wire::RowReport& row) const {
  const int ids = row.ids_size();
  if (static_cast<int>(row.authors().size()) != ids) return false;
  if (row.entropies_size() != ids && row.entropies_size() != 0) return false;
  if (row.logprobs_size() != ids && row.logprobs_size() != 0) return false;
  if (row.state().size() > kMaxRequestState) return false;
  if (row.has_handoff() && !FromWire(row.handoff().to()).ok()) return false;
  if (row.has_handoff() && row.handoff().verify() > row.tail_size()) return false;
  if (!row.has_handoff() && row.tail_size() > 0) return false;
  for (const char author : row.authors()) {
    if (author != 1 && author != 2) return false;
  }
  return true;
}

std::optional<DropReason> RequestMachine::Refuses(Role role, StreamId worker,
                                                  const wire::RowReport& row) const {
  const Side& side = sides_[static_cast<int>(role)];
  if (side.worker != worker || row.epoch() != side.epoch) return DropReason::kEpoch;
  // Before its release a row can only become credit-blocked or fail.
  const bool writes = row.ids_size() > 0 || row.has_handoff();
  const bool may_write = phase_ == Phase::kRunning || (phase_ == Phase::kReleasable && !writes);
  if (grant_.role != role || !may_write) return DropReason::kNotGranted;
  if (row.base_position() != history_.committed()) return DropReason::kBase;
  if (!WellFormed(row)) return DropReason::kMalformed;
  return std::nullopt;
}

void RequestMachine::UpdateOtherSide(Role role, const wire::RowReport& row) {
  Side& side = mutable_side(role);
  if (side.known <= history_.committed()) return;
  std::vector<TokenId> replacement(row.ids().begin(), row.ids().end());
  replacement.insert(replacement.end(), row.tail().begin(), row.tail().end());
  side.Know(KnownAfterReplace(side.known, history_.committed(), history_.tail(), replacement));
}

Position RequestMachine::Uncomputed(Role role) const {
  return std::max<Position>(1, history_.size() - side(role).read);
}

void RequestMachine::SetCreditBlocked(Role role, const wire::RowReport& row) {
  // If a newer credit is on its way to the worker, the row goes on by itself.
  credit_blocked_ = row.credit_blocked() && history_.committed() >= mutable_side(role).credit;
}

void RequestMachine::NoteCached(const wire::RowReport& row) {
  const bool wrote = row.ids_size() > 0 || row.has_handoff();
  if (wrote && !cached_ids_.has_value()) cached_ids_ = row.cached_ids();
}

void RequestMachine::Accept(Role role, const wire::RowReport& row) {
  // A row that only reports credit_blocked changes neither the history nor the decode grant.
  if (row.ids_size() == 0 && !row.has_handoff()) {
    SetCreditBlocked(role, row);
    return;
  }
  UpdateOtherSide(Other(role), row);
  int32_t written = 0;
  for (int i = 0; i < row.ids_size(); ++i) {
    const Author author = CheckedAuthor(row.authors()[i]);
    written += author == AuthorOf(role) ? 1 : 0;
    history_.Commit(row.ids(i), author);
  }
  history_.ReplaceTail({row.tail().data(), static_cast<size_t>(row.tail_size())});
  Side& side = mutable_side(role);
  ++side.rows;
  side.known = history_.size();
  // The last sampled token is computed in the next step.
  side.read = history_.size() - (row.ids_size() > 0 ? 1 : 0);
  state_ = row.state();
  reopens_ = 0;
  SetCreditBlocked(role, row);
  CountDownGrant(written);
}

void RequestMachine::CountDownGrant(int32_t written) {
  CountDown(written, &grant_.terms);
  // A grant of the small side that has not begun stays as it is.
  if (!grant_.own || grant_.own->role == Role::kSmall) return;
  wire::DecodeGrant& own = grant_.own->terms;
  const bool over =
      own.window().kind() == wire::Window::KIND_TOKENS && own.window().tokens() <= written;
  CountDown(written, &own);
  if (!over) return;
  // The end of a window hands the decode grant to the other side, as a worker does.
  grant_.own->role = Role::kSmall;
  own.mutable_window()->Clear();
  own.mutable_window()->set_kind(wire::Window::KIND_OWN_RULE);
}

void RequestMachine::SetGrant(DecodeGrant grant) {
  grant_ = std::move(grant);
  credit_blocked_ = false;
}

void RequestMachine::RestoreAlgorithmGrant() {
  TR_CHECK(grant_.own.has_value()) << "request " << origin_.key;
  DecodeGrant grant;
  grant.role = grant_.own->role;
  grant.terms = std::move(grant_.own->terms);
  SetGrant(std::move(grant));
}

void RequestMachine::FallBackToSmall() {
  for (Side& side : sides_) side.Know(std::min(side.known, history_.committed()));
  history_.ReplaceTail({});
  DecodeGrant grant;
  grant.terms.mutable_window()->set_kind(wire::Window::KIND_UNTIL_END);
  SetGrant(std::move(grant));
  degraded_ = true;
}

bool RequestMachine::HoldsHandoff() const {
  return grant_.role == Role::kLarge &&
         ::tokenrouter::HoldsHandoff(spec_.string_stops(), history_.committed(), acked_,
                                     credit_window_);
}

void RequestMachine::FillOpen(Role role, StreamId worker, int numerics_class, wire::Open* open) {
  Side& side = mutable_side(role);
  const bool class_changed = side.numerics_class != 0 && side.numerics_class != numerics_class;
  if (class_changed && history_.generated() > 0) degraded_ = true;
  side = {.worker = worker,
          .epoch = side.epoch + 1,
          .known = history_.size(),
          .read = grant_.role == role ? 0 : history_.size(),  // Computed before its first grant.
          .credit = acked_ + credit_window_,
          .numerics_class = numerics_class,
          .losses = side.losses,
          .lost_on = std::move(side.lost_on)};
  placed_ = true;
  open->set_request(origin_.key);
  open->set_epoch(side.epoch);
  *open->mutable_spec() = spec_;
  open->mutable_ids()->Add(history_.ids().begin(), history_.ids().end());
  open->set_tail(history_.size() - history_.committed());
  open->set_state(state_);
  open->set_credit(side.credit);
  if (grant_.role == role) *open->mutable_grant() = grant_.terms;
}

void RequestMachine::FillExtend(Role role, wire::Extend* extend) {
  Side& side = mutable_side(role);
  extend->set_request(origin_.key);
  extend->set_epoch(side.epoch);
  extend->set_base(side.known);
  const auto ids = history_.IdsFrom(side.known);
  extend->mutable_ids()->Add(ids.begin(), ids.end());
  extend->set_tail(history_.size() - history_.committed());
  extend->set_state(state_);
  if (grant_.role == role) *extend->mutable_grant() = grant_.terms;
  side.known = history_.size();
}

bool RequestMachine::Forget(Role role, uint32_t epoch, Position have) {
  Side& side = mutable_side(role);
  if (epoch != side.epoch || side.worker == 0 || have < 0 || have >= side.known) return false;
  side.Know(have);
  return true;
}

void RequestMachine::Suspect(Role role, const std::string& worker_id) {
  Side& side = mutable_side(role);
  if (std::find(side.lost_on.begin(), side.lost_on.end(), worker_id) != side.lost_on.end()) return;
  side.lost_on.push_back(worker_id);
  side.losses = static_cast<int>(side.lost_on.size());
}

void RequestMachine::Absolve(Role role) {
  mutable_side(role).losses = 0;
  mutable_side(role).lost_on.clear();
}

void RequestMachine::LoseSide(Role role, ReopenCause cause) {
  Side& side = mutable_side(role);
  side.lost_by = cause;
  side.worker = 0;
  side.Know(0);
  side.credit = 0;
  if (grant_.role == role) credit_blocked_ = false;
}

bool RequestMachine::Acknowledge(Position position, absl::Time now) {
  position = std::min(position, history_.committed());
  if (position <= acked_) return false;
  acked_ = position;
  stalled_since_ = now;
  return true;
}

std::optional<Position> RequestMachine::RaiseCredit(Role role, bool with_grant) {
  Side& side = mutable_side(role);
  if (side.worker == 0) return std::nullopt;
  const bool raises =
      with_grant ? RaisesCreditWithGrant(side.credit, history_.committed(), acked_, credit_window_)
                 : RaisesCredit(side.credit, acked_, credit_window_);
  if (!raises) return std::nullopt;
  side.credit = acked_ + credit_window_;
  if (grant_.role == role) credit_blocked_ = false;
  return side.credit;
}

void RequestMachine::SetPhase(Phase phase, absl::Time now) {
  TR_CHECK(kLegal[static_cast<int>(phase_)][static_cast<int>(phase)])
      << "request " << origin_.key << " from " << kPhaseNames[static_cast<int>(phase_)] << " to "
      << kPhaseNames[static_cast<int>(phase)];
  if (phase_ != phase) phase_since_ = now;
  phase_ = phase;
}

}  // namespace tokenrouter
