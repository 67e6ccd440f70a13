#include "services/scheduler/request/request_grant.h"

#include <algorithm>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

bool CountDownTerms(int32_t written, wire::DecodeGrant* terms) {
  terms->set_verify(0);
  if (terms->window().kind() != wire::Window::KIND_TOKENS) return false;
  terms->mutable_window()->set_tokens(std::max(1, terms->window().tokens() - written));
  return true;
}

}  // namespace

bool CountDown(int32_t written, RequestGrant* grant) {
  const bool changed = CountDownTerms(written, &grant->terms);
  // A grant of the small side that has not begun stays as it is.
  if (!grant->own || grant->own->role == Role::kSmall) return changed;
  wire::DecodeGrant& own = grant->own->terms;
  const bool over =
      own.window().kind() == wire::Window::KIND_TOKENS && own.window().tokens() <= written;
  const bool own_changed = CountDownTerms(written, &own);
  if (!over) return changed || own_changed;
  // The end of a window hands the decode grant to the other side, as a worker does.
  grant->own->role = Role::kSmall;
  own.mutable_window()->Clear();
  own.mutable_window()->set_kind(wire::Window::KIND_OWN_RULE);
  return true;
}

RequestGrant OwnGrant(const RequestGrant& grant) {
  TR_CHECK(grant.own.has_value());
  RequestGrant own;
  own.role = grant.own->role;
  own.terms = grant.own->terms;
  return own;
}

}  // namespace tokenrouter
