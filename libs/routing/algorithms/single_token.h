// The two decisions of every rule that lets the large model write one token where it is needed.
#pragma once

#include "libs/routing/algorithm.h"

namespace tokenrouter {

// On the small side: drop the proposal, let the large model decode this position, then come back.
inline Decision AskLarge() { return Decision::Go(Role::kLarge, Window::Tokens(1)); }

// On the large side, when its own rule is consulted: keep the proposal and hand back.
inline Decision HandBack() {
  return Decision::Go(Role::kSmall, Window::OwnRule(), Decision::Proposal::kCommit);
}

}  // namespace tokenrouter
