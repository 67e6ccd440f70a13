#include "services/scheduler/core/mode_rule.h"

#include <algorithm>
#include <utility>

namespace tokenrouter {
namespace {

RequestMachine::Pen LargeUntilEnd() {
  RequestMachine::Pen pen;
  pen.role = Role::kLarge;
  pen.turn.mutable_window()->set_kind(v1::Window::KIND_UNTIL_END);
  pen.large_alone = true;
  return pen;
}

}  // namespace

RequestMachine::Pen WithLargeAloneWindow(RequestMachine::Pen own, int32_t least_tokens) {
  RequestMachine::Pen pen = own;
  pen.large_alone = true;
  const v1::Window& window = own.turn.window();
  // These last as long as the algorithm wants: a fixed number could end them early.
  const bool longer =
      window.kind() == v1::Window::KIND_UNTIL_END || window.kind() == v1::Window::KIND_DELIMITER;
  if (own.role == Role::kLarge && longer) return pen;
  int32_t tokens = least_tokens;
  if (own.role == Role::kLarge) tokens = std::max(tokens, window.tokens());
  pen.role = Role::kLarge;
  pen.turn.mutable_window()->Clear();
  pen.turn.mutable_window()->set_kind(v1::Window::KIND_TOKENS);
  pen.turn.mutable_window()->set_tokens(tokens);
  pen.own = RequestMachine::OwnPen{own.role, std::move(own.turn)};
  return pen;
}

RequestMachine::Pen ModeRule::AtAdmission(const v1::Submit& submit, RequestMachine::Pen own) const {
  const v1::GenerationSpec& spec = submit.spec();
  if (spec.service_mode() == v1::SERVICE_MODE_LARGE_ALONE) return LargeUntilEnd();
  const bool routable = own.turn.window().kind() != v1::Window::KIND_UNTIL_END;
  const auto pair = state_->directory.FindPair(spec.pair());
  if (spec.service_mode() != v1::SERVICE_MODE_UNSPECIFIED || !routable || !pair) return own;
  const int32_t generated = submit.ids_size() - spec.prompt_length();
  const int32_t remaining = spec.stop().max_new_tokens() - generated;
  if (!WantsLargeAlone(*pair, submit.ids_size(), remaining)) return own;
  if (Probes(*pair)) return own;
  // Routed service can begin at once where the large side cannot.
  if (!LargeRoom(*pair, submit.ids_size())) return own;
  return WithLargeAloneWindow(std::move(own), state_->options.large_alone_window);
}

RequestMachine::Pen ModeRule::AtDeparture(const RequestMachine& request,
                                          const v1::Departure& departure) const {
  const RequestMachine::Pen& last = request.pen();
  RequestMachine::Pen own;
  own.role = departure.to() == v1::ROLE_SMALL ? Role::kSmall : Role::kLarge;
  *own.turn.mutable_window() = departure.window();
  own.turn.set_verify(departure.verify());
  // Not the algorithm lets go: a window that it knows nothing of has ended.
  if (last.own) {
    own.role = last.own->role;
    own.turn = last.own->turn;
  }
  if (request.spec().service_mode() != v1::SERVICE_MODE_UNSPECIFIED) return own;
  const TokenHistory& history = request.history();
  // What becomes of a tail that is not verified only the algorithm knows.
  const auto tail = static_cast<int32_t>(history.tail().size());
  if (tail != (own.role == Role::kLarge ? own.turn.verify() : 0)) return own;
  const int pair = request.origin().pair;
  if (own.role == Role::kSmall) {
    if (request.side(Role::kLarge).worker == 0) return own;
    // Somebody waits for its seat: a pen that never left would never give it up.
    if (placement_->LargeSeatWanted(pair)) return own;
  }
  // Ids that the small side has missed count only where it has been left out before: a routed
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

bool ModeRule::LargeRoom(int pair, Position ids) const {
  if (placement_->LargeSeatWanted(pair)) return false;
  const Position needs = ids + state_->options.large_alone_window;
  for (const StreamId stream : state_->directory.pair(pair).workers[Index(Role::kLarge)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    if (!worker.draining && worker.has_seat() && worker.kv.LackingFor(needs) == 0) return true;
  }
  return false;
}

}  // namespace tokenrouter
