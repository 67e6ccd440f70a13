// SequenceState is one request as one worker sees it: who it is, its rules, its ids, the decode
// grant if this worker holds it. KV is not in here: the engine may drop and rebuild it from the ids
// at any time. Ownership: owned by the SequenceTable; spans into its ids live while no command is
// applied. Threads: not thread-safe; lives on the engine's owner loop. Errors: INVALID_ARGUMENT for
// a specification, ids or a grant that the wire allows but this worker cannot serve, naming what
// and the limit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/inference/step_batch.h"
#include "libs/routing/algorithm.h"
#include "libs/tokens/stop_rules.h"
#include "libs/tokens/token_types.h"
#include "libs/worker/core/worker_history.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

// Tentative ids that one grant may ask to be verified; bounds the choices of a row.
inline constexpr int32_t kMaxVerify = 32;

// What this worker and the pair allow; the same for every sequence of a term.
struct SequenceLimits {
  Role role = Role::kSmall;
  Position context_limit = 0;     // Tokens of one sequence.
  int32_t usable_ids = 0;         // min over both models.
  std::vector<TokenId> stop_ids;  // Union of both models' end-of-sequence ids.
};

// The decode grant, as this side got it.
struct ActiveGrant {
  Window window;
  int32_t remaining = 0;  // kTokens: tokens still to write.
  int32_t verify = 0;     // Trailing tentative ids at which a choice is returned too.
};

// What a request allows its rows to wait for a fuller batch; infinite: nothing said.
struct DeferBounds {
  absl::Duration one_wait = absl::InfiniteDuration();
  absl::Duration first_token = absl::InfiniteDuration();  // From its submission.
  absl::Duration between_tokens = absl::InfiniteDuration();
};

struct SequenceState {
  // What it is. `id` names its KV in the engine.
  SequenceId id;
  std::string request_id;
  uint32_t choice = 0;
  std::string tenant;  // Shares KV with no other tenant.

  // Who asked for it in this term. Unclaimed: from an earlier term, not opened again yet.
  bool claimed = false;
  uint64_t request = 0;
  uint32_t epoch = 0;

  // Its rules, from the specification. No algorithm: the last Open was refused.
  std::unique_ptr<const Algorithm> algorithm;
  StopRules stop;
  Position prompt_length = 0;
  SamplingContext sampling;
  DeferBounds defer;

  // Where it stands.
  RequestState state;
  WorkerHistory track;
  std::optional<ActiveGrant> grant;
  bool ended = false;     // Finished or refused; only waits for its Close.
  bool released = false;  // Large side: the grant may run.
  Position credit = 0;    // Committed length up to which it may write; 0: no limit.
  absl::Time ready_since = absl::InfiniteFuture();  // Kept where rows may be deferred.
  Position cached_ids = 0;       // Of the prompt, not run because they were in KV; until reported.
  bool reported_cached = false;  // Since its Open.
  uint64_t last_step = 0;        // Number of the last step it was in, or of its opening.

  bool credit_blocked() const {
    return grant.has_value() && credit > 0 && track.committed() >= credit;
  }
  // Could run in the next step.
  bool ready(Role role) const {
    return claimed && grant.has_value() && !credit_blocked() && (role == Role::kSmall || released);
  }
  // No grant and no catching up until it is opened again.
  void End() {
    grant.reset();
    ended = true;
  }
  // Choices that its grant needs at the end of its ids.
  int32_t choices() const { return grant.has_value() ? grant->verify + 1 : 0; }
};

// Takes over everything that Open says; sets `unchanged` to the length of the prefix of ids that
// stayed. On an error too the ids are those of the message, so that the report of it is accepted;
// there is no grant then.
absl::Status ApplyOpen(const wire::Open& open, const SequenceLimits& limits,
                       SequenceState* sequence, Position* unchanged);
// REQUIRES: 0 <= extend.base() <= track.size().
absl::Status ApplyExtend(const wire::Extend& extend, const SequenceLimits& limits,
                         SequenceState* sequence);

}  // namespace tokenrouter
