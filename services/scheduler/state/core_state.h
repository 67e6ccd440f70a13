// What the parts of the scheduler core share. One per core; the parts hold a pointer to it.
// Threads: lives on the scheduler's loop. `now` is the time of the input that is being handled.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/options/scheduler_counters.h"
#include "services/scheduler/pair_model/pair_model.h"
#include "services/scheduler/request/request_machine.h"
#include "services/scheduler/request/request_registry.h"
#include "services/scheduler/request/timer_queue.h"
#include "services/scheduler/state/outbox.h"
#include "services/scheduler/workers/worker_directory.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// Who writes first under an algorithm, and for how long. INVALID_ARGUMENT for an unknown algorithm
// or a parameter outside its range.
using InitialGrantRule =
    std::function<absl::StatusOr<RequestMachine::DecodeGrant>(const api::RoutingParameters&)>;

struct CoreState {
  CoreState(CoreOptions core_options, uint64_t first_term, Output* peers)
      : options(core_options),
        forced_mode(core_options.forced_mode),
        term(first_term),
        output(peers) {}

  // How requests of this pair are served that leave it to the scheduler.
  ServiceMode ModeOf(int pair) const;

  const CoreOptions options;
  std::optional<ServiceMode> forced_mode;
  uint64_t term;
  Output* const output;
  absl::Time now = absl::UnixEpoch();
  bool draining = false;

  Outbox outbox;
  WorkerDirectory directory;
  RequestRegistry requests;
  TimerQueue timers;
  SchedulerCounters counters;
  absl::btree_set<StreamId> releasable_workers;  // Large workers with rows that wait for release.
  absl::btree_set<StreamId> may_start;           // Workers whose next step may have begun.
  absl::btree_set<int> large_steps_changed;      // Pairs with a large step that began or ended.
  absl::flat_hash_map<int, int32_t> large_kv_waiting;  // By pair: turns without a large worker.

  // What is known about a pair; made when it is first asked for.
  PairModel& ModelOf(int pair) const;

 private:
  mutable std::vector<std::unique_ptr<PairModel>> models_;  // By pair.
};

// Live requests of a pair, without those that wait for a place on a large worker: they take part in
// no batch until they have one.
int32_t ActiveRequests(const CoreState& state, int pair);
// The policy that is in force for a pair now: the flag's, or what the plan says.
BatchingPolicy PolicyOf(const CoreState& state, int pair);
// Zero while no step of that side was measured.
absl::Duration PredictStep(const CoreState& state, const AttachedWorker& worker, int32_t rows,
                           int64_t new_ids);
// The rows that are ready on a worker of a shared device begin to wait anew: its turn is over.
void RestartQueueTimers(const CoreState& state, AttachedWorker* worker);

// The request's turn may run on this worker now: it counts as one of its ready rows.
void CountReady(CoreState* state, RequestMachine* request, AttachedWorker* worker);
// What it must read there has changed; harmless when it does not count there.
void CountUncomputed(RequestMachine* request, AttachedWorker* worker);
// It does not any more; harmless when it did not.
void CountIdle(CoreState* state, RequestMachine* request);
// From now on the request waits for its client to take tokens, at most client_stall long.
void StartStall(CoreState* state, RequestMachine* request);
// Arms its stall timer, unless it is armed already.
void ArmStall(CoreState* state, RequestMachine* request, absl::Time at);
// The worker was sent something to do.
inline void NoteCommand(AttachedWorker* worker) {
  worker->nothing_ready = false;
  worker->told_since_grant = true;
}

}  // namespace tokenrouter
