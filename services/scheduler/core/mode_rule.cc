#include "services/scheduler/core/mode_rule.h"

#include <algorithm>
#include <utility>

#include "libs/routing/wire_types.h"

namespace tokenrouter {
namespace {

RequestGrant LargeUntilEnd() {
  RequestGrant grant;
  grant.role = Role::kLarge;
  grant.terms.mutable_window()->set_kind(wire::Window::KIND_UNTIL_END);
  grant.large_alone = true;
  return grant;
}

}  // namespace

RequestGrant WithLargeAloneWindow(RequestGrant own, int32_t least_tokens) {
  RequestGrant grant = own;
  grant.large_alone = true;
  const wire::Window& window = own.terms.window();
  // These last as long as the algorithm wants: a fixed number could end them early.
  const bool longer = window.kind() == wire::Window::KIND_UNTIL_END ||
                      window.kind() == wire::Window::KIND_DELIMITER;
  if (own.role == Role::kLarge && longer) return grant;
  int32_t tokens = least_tokens;
  if (own.role == Role::kLarge) tokens = std::max(tokens, window.tokens());
  grant.role = Role::kLarge;
  grant.terms.mutable_window()->Clear();
  grant.terms.mutable_window()->set_kind(wire::Window::KIND_TOKENS);
  grant.terms.mutable_window()->set_tokens(tokens);
  grant.own = AlgorithmGrant{own.role, std::move(own.terms)};
  return grant;
}

ModeRule::Beginning ModeRule::AtAdmission(const wire::Submit& submit, RequestGrant own) const {
  const wire::GenerationSpec& spec = submit.spec();
  if (spec.service_mode() == api::SERVICE_MODE_LARGE_ALONE) return {LargeUntilEnd()};
  const bool routable = own.terms.window().kind() != wire::Window::KIND_UNTIL_END;
  const auto pair = state_->directory.FindPair(spec.pair());
  if (spec.service_mode() != api::SERVICE_MODE_UNSPECIFIED || !routable || !pair) return {own};
  const int32_t generated = submit.ids_size() - spec.prompt_length();
  const int32_t remaining = spec.stop().max_new_tokens() - generated;
  if (!WantsLargeAlone(*pair, submit.ids_size(), remaining)) return {own};
  const bool asks = !state_->forced_mode;
  if (asks && state_->ModelOf(*pair).mode_choice().ProbeDue(state_->now)) return {own, asks};
  // Routed service can begin at once where the large side cannot.
  if (!HasLargeCapacity(*pair, submit.ids_size())) return {own, asks};
  return {WithLargeAloneWindow(std::move(own), state_->options.large_alone_window), asks};
}

RequestGrant ModeRule::AtHandoff(const RequestMachine& request,
                                 const wire::Handoff& handoff) const {
  const RequestGrant& last = request.grant();
  RequestGrant own;
  own.role = CheckedRole(handoff.to());
  *own.terms.mutable_window() = handoff.window();
  own.terms.set_verify(handoff.verify());
  // This handoff is not the algorithm's: a large-only window, unknown to it, has ended.
  if (last.own) {
    own.role = last.own->role;
    own.terms = last.own->terms;
  }
  if (request.spec().service_mode() != api::SERVICE_MODE_UNSPECIFIED) return own;
  const TokenHistory& history = request.history();
  // Only the algorithm knows what happens to a tail that is not verified.
  const auto tail = static_cast<int32_t>(history.tail().size());
  if (tail != (own.role == Role::kLarge ? own.terms.verify() : 0)) return own;
  const int pair = request.origin().pair;
  if (own.role == Role::kSmall) {
    if (request.side(Role::kLarge).worker == 0) return own;
    // Another request waits for its slot: a grant that never left would never free it.
    if (placement_->LargeSlotWanted(pair)) return own;
  }
  // Ids that the small side lacks count only where it was left out before: a routed
  // request would be judged by the one id of its last visit.
  const Position unread =
      last.large_alone ? history.size() - request.side(Role::kSmall).known : Position{0};
  const int32_t remaining = request.spec().stop().max_new_tokens() - history.generated();
  if (!WantsLargeAlone(pair, unread, remaining)) return own;
  if (own.role == Role::kSmall && Probes(pair)) return own;
  return WithLargeAloneWindow(std::move(own), state_->options.large_alone_window);
}

bool ModeRule::Probes(int pair) const {
  return !state_->forced_mode && state_->ModelOf(pair).TakeProbe(state_->now);
}

bool ModeRule::WantsLargeAlone(int pair, Position unread, int32_t remaining) const {
  if (state_->ModeOf(pair) == ServiceMode::kLargeAlone) return true;
  if (state_->forced_mode || unread == 0) return false;
  return !state_->ModelOf(pair).PromptWorthRouting(unread, remaining);
}

bool ModeRule::HasLargeCapacity(int pair, Position ids) const {
  if (placement_->LargeSlotWanted(pair)) return false;
  const Position needs = ids + state_->options.large_alone_window;
  for (const StreamId stream : state_->directory.pair(pair).workers[Index(Role::kLarge)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    if (!worker.draining && worker.has_free_slot() && worker.kv.LackingFor(needs) == 0) return true;
  }
  return false;
}

}  // namespace tokenrouter
