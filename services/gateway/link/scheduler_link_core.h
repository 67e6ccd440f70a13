// SchedulerLinkCore is a gateway's one stream to the scheduler: its connection, and the requests
// that live on it. It is a pure state machine: frames and times go in, frames and events come out,
// so the shell (scheduler_link.h) and the simulator run the same rules.
// Ownership: owns all it is given. Threads: not thread-safe, one owner. Time: any monotonic origin.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/packages.h"
#include "services/gateway/link/link_connection.h"
#include "services/gateway/link/link_options.h"
#include "services/gateway/link/link_requests.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

class SchedulerLinkCore {
 public:
  explicit SchedulerLinkCore(LinkOptions options) : options_(std::move(options)) {}
  SchedulerLinkCore(const SchedulerLinkCore&) = delete;
  SchedulerLinkCore& operator=(const SchedulerLinkCore&) = delete;

  // What the front ends want goes there.
  LinkRequests& requests() { return requests_; }
  const LinkConnection& connection() const { return connection_; }
  const LinkCounters& counters() const { return counters_; }

  // True when the shell should dial now; until OnConnected or OnDisconnected it is false again.
  bool TakeDial(absl::Time now) { return connection_.TakeDial(now); }
  void OnConnected() { connection_.OnConnected(); }
  // Clients receive `why` as the error message while the link is down.
  void OnDisconnected(absl::Time now, std::string why = {});
  void OnFrame(const wire::SchedulerFrame& frame, absl::Time now);
  // True once when the stream must be ended because the peer's Welcome was refused.
  bool TakeHangUp() { return connection_.TakeHangUp(); }

  // Expires waits. Call at or after NextDeadline().
  void Tick(absl::Time now);
  // Returns the frame that should be written now, if any.
  std::optional<wire::GatewayFrame> TakeFrame(absl::Time now);
  // When Tick, TakeDial or TakeFrame have something to do without anything else happening.
  absl::Time NextDeadline() const;
  std::vector<LinkEvent> TakeEvents() { return requests_.TakeEvents(); }

 private:
  const LinkOptions options_;
  LinkCounters counters_;
  LinkConnection connection_{&options_};
  LinkRequests requests_{&options_, &counters_};
};

}  // namespace tokenrouter
