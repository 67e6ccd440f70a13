#include "services/scheduler/request/request_machine.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "libs/routing/wire_types.h"
#include "libs/status/check.h"
#include "services/scheduler/request/catch_up.h"

namespace tokenrouter {

RequestMachine::RequestMachine(Origin origin, wire::GenerationSpec spec, TokenHistory history,
                               std::string state, RequestGrant grant, Position credit_window)
    : origin_(origin),
      spec_(std::move(spec)),
      history_(std::move(history)),
      state_(std::move(state)),
      grant_(std::move(grant)),
      phase_(origin.key, origin.submitted_at) {
  TR_CHECK(history_.tail().empty());
  service_.client = {.acked = history_.prompt_length(),
                     .credit_window = credit_window,
                     .stalled_since = origin.submitted_at};
  service_.committed_at = origin.submitted_at;
}

void RequestMachine::UpdateOtherSide(Role role, const wire::RowReport& row) {
  RequestSide& side = mutable_side(role);
  if (side.known <= history_.committed()) return;
  std::vector<TokenId> replacement(row.ids().begin(), row.ids().end());
  replacement.insert(replacement.end(), row.tail().begin(), row.tail().end());
  side.Know(KnownAfterReplace(side.known, history_.committed(), history_.tail(), replacement));
}

void RequestMachine::SetCreditBlocked(Role role, const wire::RowReport& row) {
  // If a newer credit is on its way to the worker, the row goes on by itself.
  RequestSide& side = mutable_side(role);
  side.credit_blocked = row.credit_blocked() && history_.committed() >= side.credit;
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
  RequestSide& side = mutable_side(role);
  ++side.rows;
  side.known = history_.size();
  // The last sampled token is computed in the next step.
  side.read = history_.size() - (row.ids_size() > 0 ? 1 : 0);
  state_ = row.state();
  service_.reopens = 0;
  SetCreditBlocked(role, row);
  if (CountDown(written, &grant_)) service_.grant_sent = false;
}

void RequestMachine::SetGrant(RequestGrant grant) {
  grant_ = std::move(grant);
  service_.grant_sent = false;
  for (RequestSide& side : sides_) side.credit_blocked = false;
}

void RequestMachine::FallBackToSmall() {
  for (RequestSide& side : sides_) side.Know(std::min(side.known, history_.committed()));
  history_.ReplaceTail({});
  RequestGrant grant;
  grant.terms.mutable_window()->set_kind(wire::Window::KIND_UNTIL_END);
  SetGrant(std::move(grant));
  service_.degraded = true;
}

}  // namespace tokenrouter
