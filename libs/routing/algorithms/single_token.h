// The two decisions of every rule that lets the large model write where it is needed: one token, or
// a few.
#pragma once

#include <cstdint>

#include "libs/routing/algorithm.h"

namespace tokenrouter {

// On the small side: drop the proposal, let the large model decode from this position on, then come
// back.
inline Decision AskLarge(int32_t tokens = 1) {
  return Decision::Go(Role::kLarge, Window::Tokens(tokens));
}

// On the large side, when its own rule is consulted: keep the proposal and hand back.
inline Decision HandBack() {
  return Decision::Go(Role::kSmall, Window::OwnRule(), Decision::Proposal::kCommit);
}

}  // namespace tokenrouter
