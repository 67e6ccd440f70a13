// ModeRule applies large-only service where routing costs more than it saves: it turns an
// algorithm's decision about the decode grant into the grant that is given. It is asked at
// admission and at every handoff, so a request follows the pair's mode within one window. It only
// ever moves the decode grant towards the large side. Algorithms whose opening lasts until the end
// (never, always) and requests whose specification says how they are served are left alone, and an
// algorithm's state is untouched. The algorithm's own decision is kept in DecodeGrant::own; the
// request returns to it at the end of the window, or at once when no large worker can take it.
// Threads: lives on the scheduler's loop. All methods are const and send nothing.
#pragma once

#include "libs/batching_model/mode_controller.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class ModeRule {
 public:
  // Both must outlive this object.
  ModeRule(const CoreState* state, const Placement* placement)
      : state_(state), placement_(placement) {}

  struct Beginning {
    RequestGrant grant;
    bool asked_for_probe = false;  // Admitted must be called if the request is.
  };
  // How a submitted request begins, if it is admitted. `own` is its algorithm's opening.
  Beginning AtAdmission(const wire::Submit& submit, RequestGrant own) const;
  // A request that asked whether it is the probe was admitted: a refused one spends none.
  void Admitted(int pair) const { state_->ModelOf(pair).TakeProbe(state_->now); }
  // The decode grant after an accepted handoff. REQUIRES: request.grant() is still the one that
  // is
  // handed off.
  RequestGrant AtHandoff(const RequestMachine& request, const wire::Handoff& handoff) const;

 private:
  // `unread` ids would be uncomputed on the small side, `remaining` tokens may still be written.
  bool WantsLargeAlone(int pair, Position unread, int32_t remaining) const;
  // Whether this request is the probe that measures what its algorithm would do.
  bool Probes(int pair) const;
  // Whether a large worker has a slot and KV capacity for so many ids now.
  bool HasLargeCapacity(int pair, Position ids) const;

  const CoreState* const state_;
  const Placement* const placement_;
};

// The decode grant with a large-only window: at least `least_tokens` tokens, or as long as the
// algorithm lets the large side write anyway. A verification that goes with it stays.
RequestGrant WithLargeAloneWindow(RequestGrant own, int32_t least_tokens);

}  // namespace tokenrouter
