// RetryAdvice says when a refused client should come back: once the present queue is likely to have
// gone. A queue of q requests goes in q times the mean time between the ends of requests, which
// each leave room for one. Requests draw a jitter by their id, so that those that were refused
// together do not come back together. Threads: lives on the scheduler's loop.
#pragma once

#include <string_view>

#include "absl/time/time.h"
#include "services/scheduler/options/core_options.h"

namespace tokenrouter {

// Share of the wait that the jitter adds at most.
inline constexpr double kRetrySpread = 0.5;

class RetryAdvice {
 public:
  explicit RetryAdvice(const CoreOptions& options)
      : least_(options.least_retry_after), most_(options.most_retry_after) {}

  // A request ended that had a worker.
  void NoteEnd(absl::Time now);
  // `queued`: requests that wait for a worker. Never below `at_least`.
  absl::Duration After(int queued, absl::Duration at_least, std::string_view request_id) const;

 private:
  const absl::Duration least_;
  const absl::Duration most_;
  absl::Time ended_at_ = absl::InfinitePast();
  absl::Duration between_ends_;  // Mean of late; zero before the second end.
};

}  // namespace tokenrouter
