// GrantWatch bounds how long a decode grant may bring nothing while its worker is alive: heartbeats
// come from a thread of their own and say nothing about one row. A request whose grant stands as it
// stood grant_timeout ago is closed there and opened again, elsewhere if there is another worker:
// the one that holds it is taken again only after it has confirmed the close.
// Waits that have bounds of their own are not judged: for a worker, for the client's
// acknowledgements.
// Ownership: one timer per request, for as long as it lives. Threads: lives on the scheduler's
// loop.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/placement/request_finisher.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class GrantWatch {
 public:
  // All must outlive this object.
  GrantWatch(CoreState* state, RequestFinisher* finisher, Placement* placement)
      : state_(state), finisher_(finisher), placement_(placement) {}

  // A request has begun. It may have ended already.
  void Begin(uint64_t key);
  // Its timer is due.
  void Timer(RequestMachine* request);
  // A request ends.
  void Forget(uint64_t key) { looks_.erase(key); }
  void Clear() { looks_.clear(); }

 private:
  // What a request looked like, and since when it looks so.
  struct Look {
    Role role = Role::kSmall;
    uint32_t epoch = 0;
    Position committed = 0;
    bool granted = false;  // A worker has it and may write, as far as the client goes.
    absl::Time since;
    bool SameAs(const Look& other) const {
      return role == other.role && epoch == other.epoch && committed == other.committed &&
             granted == other.granted;
    }
  };

  Look LookAt(const RequestMachine& request) const;
  // How long the worker may take over this row and all others that it has.
  absl::Duration Patience(const RequestMachine& request) const;
  void Reopen(RequestMachine* request);

  CoreState* const state_;
  RequestFinisher* const finisher_;
  Placement* const placement_;
  absl::flat_hash_map<uint64_t, Look> looks_;  // Of live requests.
};

}  // namespace tokenrouter
