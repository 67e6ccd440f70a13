// Whether a submitted request may enter. Pure.
// Errors: the status names the invalid value and what is allowed; the reason is machine-readable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/options/reasons.h"
#include "services/scheduler/workers/worker_directory.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

struct Refusal {
  RejectReason reason = RejectReason::kInvalid;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::string message;
  absl::Duration retry_at_least = absl::ZeroDuration();
};

// The load of the scheduler.
struct AdmissionLoad {
  int live = 0;
  int newcomers = 0;         // New requests that wait for their first worker.
  bool must_wait = false;    // No worker of the first role has capacity now.
  int64_t reserved_ids = 0;  // Of the live requests.
  int64_t wanted_ids = 0;    // Of this one.
  // Until requests of before this term may still come back; zero once they have had their time.
  absl::Duration settles_in = absl::ZeroDuration();
};

// Checks the ids, authors, state, grant and limits of the message itself. The pair's limits are
// skipped while they are unknown.
std::optional<Refusal> JudgeSubmit(const wire::Submit& submit, const Pair& pair);
// Checks prompt + max_new_tokens against the pair's context limit.
std::optional<Refusal> JudgeContext(const wire::GenerationSpec& spec, const Pair& pair);
// Checks the load. A resumed request was admitted before and is always admitted again. What is in
// flight is bounded by max_requests and the new requests of the settling time.
std::optional<Refusal> JudgeLoad(const AdmissionLoad& load, bool resumed,
                                 const CoreOptions& options);

}  // namespace tokenrouter
