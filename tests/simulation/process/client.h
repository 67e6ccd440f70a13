// A simulated client: what it asks for and how it behaves, and what became of that.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/request.pb.h"

namespace tokenrouter::simulation {

// A request and how its client behaves.
struct ClientPlan {
  wire::GenerationSpec spec;
  std::vector<TokenId> prompt;
  absl::Duration starts_after;
  absl::Duration reads_in;  // The time from a chunk to its acknowledgement.
  int cancels_after = -1;   // Generated tokens before the client cancels; -1: never.
  int stops_after = -1;     // Generated tokens at which a stop string is found; -1: never.
  int pauses_after = -1;    // Generated tokens after which it reads nothing for `pause`.
  absl::Duration pause = absl::ZeroDuration();
  bool resubmits = false;  // When its gateway dies: the same request id again, until it ends.
  bool poison = false;     // The engine that reads its prompt crashes.
  Position credit_window = 0;
  Position credit_slack = 0;  // How far a verified tail may end beyond the credit.
};

// The outcome of one submission of a request to a gateway.
struct ClientRecord {
  ClientPlan plan;
  int attempt = 0;  // Submissions of this request before this one.
  absl::Time submitted_at = absl::InfiniteFuture();
  absl::Time ended_at = absl::InfiniteFuture();
  bool ended = false;
  bool cancelled = false;
  bool stopped = false;  // Ended by its stop string.
  bool lost = false;     // Ended by the death of its gateway.
  bool paused = false;
  bool degraded = false;
  std::vector<TokenId> ids;  // The generated ids.
  std::string authors;       // One byte per id, as on the wire.
  int32_t large_alone = 0;   // Ids that were written under large-only service.
  Position acknowledged = 0;
  wire::Finish finish;
  absl::Status error;

  bool submitted() const { return submitted_at != absl::InfiniteFuture(); }
};

}  // namespace tokenrouter::simulation
