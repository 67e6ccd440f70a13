#include "services/scheduler/request/side_commands.h"

#include <algorithm>
#include <utility>

#include "services/scheduler/request/credit.h"

namespace tokenrouter {

void FillOpen(RequestMachine* request, Role role, StreamId worker, int numerics_class,
              wire::Open* open) {
  RequestSide& side = request->mutable_side(role);
  ServiceRecord& service = request->mutable_service();
  const TokenHistory& history = request->history();
  const RequestGrant& grant = request->grant();
  const bool class_changed = side.numerics_class != 0 && side.numerics_class != numerics_class;
  if (class_changed && history.generated() > 0) service.degraded = true;
  side = {.worker = worker,
          .epoch = side.epoch + 1,
          .known = history.size(),
          .read = grant.role == role ? 0 : history.size(),  // Computed before its first grant.
          .credit = service.client.acked + service.client.credit_window,
          .numerics_class = numerics_class,
          .lost_on = std::move(side.lost_on)};
  service.placed = true;
  open->set_request(request->origin().key);
  open->set_epoch(side.epoch);
  *open->mutable_spec() = request->spec();
  open->mutable_ids()->Add(history.ids().begin(), history.ids().end());
  open->set_tail(history.size() - history.committed());
  open->set_state(request->state());
  open->set_credit(side.credit);
  if (grant.role == role) *open->mutable_grant() = grant.terms;
}

void FillExtend(RequestMachine* request, Role role, wire::Extend* extend) {
  RequestSide& side = request->mutable_side(role);
  const TokenHistory& history = request->history();
  extend->set_request(request->origin().key);
  extend->set_epoch(side.epoch);
  extend->set_base(side.known);
  const auto ids = history.IdsFrom(side.known);
  extend->mutable_ids()->Add(ids.begin(), ids.end());
  extend->set_tail(history.size() - history.committed());
  extend->set_state(request->state());
  if (request->grant().role == role) *extend->mutable_grant() = request->grant().terms;
  side.known = history.size();
}

std::optional<Position> RaiseCredit(RequestMachine* request, Role role, bool with_grant) {
  RequestSide& side = request->mutable_side(role);
  if (side.worker == 0) return std::nullopt;
  const ClientState& client = request->service().client;
  const bool raises = with_grant
                          ? RaisesCreditWithGrant(side.credit, request->history().committed(),
                                                  client.acked, client.credit_window)
                          : RaisesCredit(side.credit, client.acked, client.credit_window);
  if (!raises) return std::nullopt;
  side.credit = client.acked + client.credit_window;
  side.credit_blocked = false;
  return side.credit;
}

bool HoldsHandoff(const RequestMachine& request) {
  const ClientState& client = request.service().client;
  return request.grant().role == Role::kLarge &&
         HoldsHandoff(request.spec().string_stops(), request.history().committed(), client.acked,
                      client.credit_window);
}

Position Uncomputed(const RequestMachine& request, Role role) {
  return std::max<Position>(1, request.history().size() - request.side(role).read);
}

bool HasReadPrompt(const RequestMachine& request, Role role) {
  return request.side(role).read >= request.history().prompt_length();
}

}  // namespace tokenrouter
