// WorkerDirectory knows the attached workers, the pairs that they form and the devices that they
// share. It judges hellos; it does not decide which worker runs.
// Ownership: owns its entries; a pointer is valid until Remove.
// Threads: lives on the scheduler's loop.
// Units: capacity in blocks and sequences. A pair's limits are 0 until a worker has reported them.
// Errors: FAILED_PRECONDITION when a worker does not fit its pair, INVALID_ARGUMENT when its hello
// is malformed, RESOURCE_EXHAUSTED beyond kMaxPairs pairs; messages name both values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/workers/kv_ledger.h"
#include "services/scheduler/workers/lease_policy.h"
#include "services/scheduler/workers/prefix_affinity.h"
#include "services/scheduler/workers/running_step.h"
#include "services/scheduler/workers/watchdog.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// A decode grant on a large worker that waits for its release.
struct Releasable {
  absl::Time since;
  int64_t unseen_ids = 0;  // Uncomputed tokens of the request.
};

// The deferral rule and the large steps that were sent to a small worker (wire::Deferral).
struct ToldDeferral {
  wire::Deferral rule;
  bool waits = false;  // Rows may wait under the rule, so the worker is sent large steps.
  uint64_t steps = 0;  // Messages about large steps so far.
  int32_t batch = 0;   // Rows of the last step that was sent; 0: none runs.
  absl::Time since;    // The start of that step.
};

struct AttachedWorker {
  StreamId stream = 0;
  wire::WorkerHello hello;
  Role role = Role::kSmall;
  int pair = 0;
  int numerics_class = 0;  // Interned, from 1.
  WorkerPulse pulse;
  int64_t free_blocks = 0;
  uint64_t steps = 0;
  bool draining = false;
  uint64_t suspect = 0;  // The suspected request that runs here; 0: none does.

  absl::btree_set<uint64_t> open;     // Requests that have a side here.
  absl::btree_set<uint64_t> closing;  // Closed by the scheduler, not yet confirmed.
  SentPrefixes sent;                  // The prefixes of what was opened here.
  KvLedger kv;                        // The KV account of the requests in `open` (large side).
  // When victims are looked for again after a search for the growth of residents found none.
  absl::Time look_for_growth_at = absl::InfinitePast();
  // Decode grants that are not yet released, by request (large side).
  absl::btree_map<uint64_t, Releasable> releasable;
  // Sequences of an earlier term.
  absl::flat_hash_map<std::pair<std::string, uint32_t>, Position> held;

  int32_t ready = 0;                             // Requests whose decode grant may run here now.
  uint64_t last_lease = 0;                       // The id of its last lease.
  absl::Time granted_at = absl::InfinitePast();  // Of a lease under which no step has ended yet.
  bool nothing_ready = false;  // Reported at its last lease return; cleared by any command.
  bool told_since_grant = false;

  RunningStep step;
  bool step_from_idle = true;  // It ran nothing before, so the step includes the handoff latency.
  int64_t uncomputed_ids = 0;  // Uncomputed tokens of its ready rows (side_commands.h).
  int64_t background_ids = 0;  // As of its last StepReport.
  // On a shared device: since when its oldest ready row has waited, and when its most urgent row
  // must start at the latest.
  absl::Time oldest_ready = absl::InfiniteFuture();
  absl::Time serve_by = absl::InfiniteFuture();
  // For its rows that wait for release: when to decide again.
  absl::Time release_at = absl::InfiniteFuture();
  ToldDeferral told;

  int32_t sequences() const { return static_cast<int32_t>(open.size() + closing.size()); }
  bool has_free_slot() const {
    return hello.max_sequences() == 0 || sequences() < hello.max_sequences();
  }
};

struct Pair {
  std::string name;
  absl::btree_set<StreamId> workers[kRoles];
  // When the last worker of a role was lost; the infinite past if there never was one.
  absl::Time empty_since[kRoles] = {absl::InfinitePast(), absl::InfinitePast()};
  // What all attached workers allow. Kept while a role has no worker, so that a pair does not
  // change.
  int32_t context_limit = 0;
  std::string context_bound;  // What sets the limit, in words.
  int32_t usable_ids = 0;
  std::vector<int32_t> stop_ids;
  std::string model[kRoles];
};

// Workers that share a device.
struct Device {
  absl::btree_set<StreamId> members;
  HeldLease lease;
};

// Pairs are never forgotten, so their number is bounded: a peer that invents names must not exhaust
// memory.
inline constexpr int kMaxPairs = 1024;

class WorkerDirectory {
 public:
  // The number of a pair; a new name gets a new number. REQUIRES: MayKnow(name).
  int PairOf(const std::string& name);
  std::optional<int> FindPair(const std::string& name) const;
  // Whether the pair is known or may still be added.
  bool MayKnow(const std::string& name) const { return pairs() < kMaxPairs || FindPair(name); }
  const Pair& pair(int index) const { return *pairs_[index]; }
  int pairs() const { return static_cast<int>(pairs_.size()); }

  // Whether a worker with this hello may attach.
  absl::Status Judge(const wire::WorkerHello& hello) const;
  // REQUIRES: Judge(hello) is OK, stream unknown.
  AttachedWorker* Add(StreamId stream, const wire::WorkerHello& hello, absl::Time now);
  void Remove(StreamId stream, absl::Time now);

  AttachedWorker* Find(StreamId stream) const;
  AttachedWorker* FindById(const std::string& worker_id) const;
  // Streams in ascending order.
  std::vector<StreamId> Streams() const;
  absl::btree_map<std::string, Device>& devices() { return devices_; }
  const absl::btree_map<StreamId, std::unique_ptr<AttachedWorker>>& workers() const {
    return workers_;
  }
  // The device that the worker shares; null on a dedicated device.
  Device* DeviceOf(const AttachedWorker& worker);
  // Whether the worker shares its device with a worker of the other role, and so runs by lease.
  bool NeedsLease(const AttachedWorker& worker) const;
  // Whether a small and a large worker of the pair share a device.
  bool SharesDevice(int pair) const;
  // The longest step that every worker of the pair allows; infinite when none has a limit.
  absl::Duration MaxStep(int pair) const;

 private:
  absl::Status JudgeAgainstPair(const wire::WorkerHello& hello, const Pair& pair) const;
  void Refresh(Pair* pair);
  int InternClass(const std::string& numerics_class);

  std::vector<std::unique_ptr<Pair>> pairs_;
  absl::flat_hash_map<std::string, int> pair_numbers_;
  absl::btree_map<StreamId, std::unique_ptr<AttachedWorker>> workers_;
  absl::btree_map<std::string, Device> devices_;
  absl::flat_hash_map<std::string, int> classes_;
};

}  // namespace tokenrouter
