// WorkerDirectory knows the attached workers, the pairs that they form and the devices that they
// share. It judges a hello; it does not decide who works.
// Ownership: owns its entries; a pointer is valid until Remove.
// Threads: lives on the scheduler's loop.
// Units: capacity in blocks and sequences. A pair's limits are 0 while no worker has told them.
// Errors: FAILED_PRECONDITION when a worker does not fit its pair, INVALID_ARGUMENT when its hello
// makes no sense, RESOURCE_EXHAUSTED for one pair too many; messages name both values.
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

// A turn of a large worker that waits for its release.
struct Releasable {
  absl::Time since;
  int64_t unseen_ids = 0;  // That the worker must read before it can answer.
};

// What a small worker was told about when to wait; see wire::Deferral.
struct ToldDeferral {
  wire::Deferral rule;
  bool waits = false;  // The rule says more than nothing: it is told of large steps.
  uint64_t steps = 0;  // Words about large steps so far.
  int32_t batch = 0;   // Rows of the step that it was told of last; 0: none runs.
  absl::Time since;    // Of that step.
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

  absl::btree_set<uint64_t> open;     // Requests that have a side here.
  absl::btree_set<uint64_t> closing;  // Closed by us, not yet confirmed.
  SentPrefixes sent;                  // Of what was opened here.
  KvLedger kv;                        // Of the requests in `open` (large side).
  // Before that time nobody is looked for who could give way to the growth of others.
  absl::Time look_for_growth_at = absl::InfinitePast();
  // Turns that are not yet released, by request (large side).
  absl::btree_map<uint64_t, Releasable> releasable;
  absl::flat_hash_map<std::pair<std::string, uint32_t>, Position> held;  // From an earlier term.

  int32_t ready = 0;                             // Requests whose turn may run here now.
  uint64_t last_lease = 0;                       // Turn number of its last lease.
  absl::Time granted_at = absl::InfinitePast();  // Of a lease that has seen no step end yet.
  bool nothing_ready = false;  // It said so when it gave back its lease; cleared by any command.
  bool told_since_grant = false;

  RunningStep step;
  bool step_from_idle = true;  // It ran nothing before: the step also took the way there and back.
  int64_t unread_ids = 0;      // Of its ready rows (RequestMachine::Uncomputed).
  int64_t background_ids = 0;  // Its last StepReport's.
  // On a shared device, of its rows that are ready: since when the oldest waits, and when one of
  // them must start at the latest.
  absl::Time oldest_ready = absl::InfiniteFuture();
  absl::Time serve_by = absl::InfiniteFuture();
  // Of its rows that wait for release: when to decide again, and where the present wait ends.
  absl::Time release_at = absl::InfiniteFuture();
  absl::Time release_armed = absl::InfiniteFuture();
  ToldDeferral told;

  int32_t sequences() const { return static_cast<int32_t>(open.size() + closing.size()); }
  bool has_free_slot() const {
    return hello.max_sequences() == 0 || sequences() < hello.max_sequences();
  }
};

struct Pair {
  std::string name;
  absl::btree_set<StreamId> workers[kRoles];
  // When the last worker of a role was lost; the infinite past while there never was one.
  absl::Time empty_since[kRoles] = {absl::InfinitePast(), absl::InfinitePast()};
  // What all attached workers allow; kept while a role is away so that a pair does not change.
  int32_t context_limit = 0;
  std::string context_bound;  // What sets it, in words.
  int32_t usable_ids = 0;
  std::vector<int32_t> stop_ids;
  std::string model[kRoles];
};

// Workers that share a device.
struct Device {
  absl::btree_set<StreamId> members;
  HeldLease lease;
};

// Pairs are never forgotten: a peer that invents names must not grow the process.
inline constexpr int kMaxPairs = 1024;

class WorkerDirectory {
 public:
  // The number of a pair; a new name gets a new number. REQUIRES: MayKnow(name).
  int PairOf(const std::string& name);
  std::optional<int> FindPair(const std::string& name) const;
  // Whether the pair is known or there is room for one more.
  bool MayKnow(const std::string& name) const { return pairs() < kMaxPairs || FindPair(name); }
  const Pair& pair(int index) const { return *pairs_[index]; }
  int pairs() const { return static_cast<int>(pairs_.size()); }

  // Whether the hello may join.
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
  // The device that the worker shares; null when it has one of its own.
  Device* DeviceOf(const AttachedWorker& worker);
  // Whether the worker takes turns with a worker of the other role.
  bool NeedsLease(const AttachedWorker& worker) const;
  // Whether a small and a large worker of the pair take turns on one device.
  bool SharesDevice(int pair) const;
  // The longest step that every worker of the pair allows itself; infinite: none has a limit.
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
