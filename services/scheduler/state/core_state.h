// The state that the parts of the scheduler core share. There is one per core; the parts hold a
// pointer to it.
// Threads: lives on the scheduler's loop. `now` is the time of the input that is being handled.
#pragma once

#include <algorithm>
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
#include "services/scheduler/state/lost_workers.h"
#include "services/scheduler/state/outbox.h"
#include "services/scheduler/state/retry_advice.h"
#include "services/scheduler/workers/worker_directory.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// The first decode grant under an algorithm: which side writes, and for how long. INVALID_ARGUMENT
// for an unknown algorithm or a parameter outside its range.
using InitialGrantRule = std::function<absl::StatusOr<RequestGrant>(const api::RoutingParameters&)>;

// New requests that wait for their first worker.
struct NewcomerCount {
  int total = 0;
  absl::flat_hash_map<int, int> by_pair;
  void Add(int pair, int more) {
    total += more;
    by_pair[pair] += more;
  }
  int of(int pair) const {
    const auto found = by_pair.find(pair);
    return found == by_pair.end() ? 0 : found->second;
  }
};

struct CoreState {
  CoreState(CoreOptions core_options, uint64_t first_term, Output* peers)
      : options(core_options),
        forced_mode(core_options.forced_mode),
        term(first_term),
        output(peers),
        retry(options) {}

  // How requests of this pair are served when they leave the mode to the scheduler.
  ServiceMode ModeOf(int pair) const;

  const CoreOptions options;
  std::optional<ServiceMode> forced_mode;
  uint64_t term;
  Output* const output;
  absl::Time now = absl::UnixEpoch();
  // When the first peer of this term came; the infinite future before it. A process that was
  // started as a spare may tick for hours until then.
  absl::Time term_since = absl::InfiniteFuture();
  absl::btree_set<std::pair<int, Role>> pools_seen;  // Pools that had a worker in this term.

  Outbox outbox;
  WorkerDirectory directory;
  LostWorkers lost_workers;
  RequestRegistry requests;
  TimerQueue timers;
  SchedulerCounters counters;
  absl::btree_set<StreamId> releasable_workers;  // Large workers with rows that wait for release.
  absl::btree_set<int> suspect_done;             // Pairs where a suspect makes room for the next.
  absl::btree_set<StreamId> may_start;           // Workers whose next step may have begun.
  absl::btree_set<int> large_steps_changed;      // Pairs whose large steps began or ended.
  // By pair: requests that wait for a large worker.
  absl::flat_hash_map<int, int32_t> large_kv_waiting;
  NewcomerCount newcomers;
  RetryAdvice retry;

  // At each input.
  void SetNow(absl::Time time) { now = time; }
  // At each hello.
  void PeerCame() { term_since = std::min(term_since, now); }
  // From then on it is known of the pool whether it is empty: in the past once it had a worker.
  absl::Time KnownFrom(int pair, Role role) const {
    return pools_seen.contains({pair, role}) ? absl::InfinitePast() : term_since + options.settling;
  }

  // The model of a pair, created on first use.
  PairModel& ModelOf(int pair) const;

 private:
  mutable std::vector<std::unique_ptr<PairModel>> models_;  // By pair.
};

// Live requests of a pair, except those that wait for a KV reservation on a large worker: they take
// part in no batch until they have one.
int32_t ActiveRequests(const CoreState& state, int pair);
// The batching policy in force for a pair now: the configured one, or the plan's.
BatchingPolicy PolicyOf(const CoreState& state, int pair);
// The predicted time of a step. Zero while no step of that side was measured.
absl::Duration PredictStep(const CoreState& state, const AttachedWorker& worker, int32_t rows,
                           int64_t new_ids);
// The ready rows of a worker on a shared device begin to wait anew, because its lease is over.
void RestartQueueTimers(const CoreState& state, AttachedWorker* worker);

// The request's decode grant may run on this worker now: the request counts among its ready rows.
void CountReady(CoreState* state, RequestMachine* request, AttachedWorker* worker);
// The request's uncomputed tokens on this worker have changed. No effect if it does not count
// there.
void CountUncomputed(RequestMachine* request, AttachedWorker* worker);
// The request no longer counts among the ready rows of any worker. No effect if it did not.
void CountIdle(CoreState* state, RequestMachine* request);
// The request does not run on this side any more, or is no suspect any more.
void FreeSuspectSlot(CoreState* state, const RequestMachine& request, Role role);
// The request waits for its client to take tokens from now on, at most client_stall long.
void StartStall(CoreState* state, RequestMachine* request);
// Arms the request's stall timer, unless it is armed already.
void ArmStall(CoreState* state, RequestMachine* request, absl::Time at);
// Notes that a command was sent to the worker.
inline void NoteCommand(AttachedWorker* worker) {
  worker->nothing_ready = false;
  worker->told_since_grant = true;
}

}  // namespace tokenrouter
