#include "services/scheduler/workers/worker_directory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/routing/wire_types.h"
#include "libs/status/check.h"
#include "libs/tokens/protocol_version.h"

namespace tokenrouter {
namespace {

// The longest sequence that the model allows and the KV of the worker can hold.
int32_t ContextOf(const wire::WorkerHello& hello) {
  const int64_t in_kv = hello.total_blocks() * hello.block_size();
  if (in_kv <= 0) return hello.context_limit();
  return static_cast<int32_t>(std::min<int64_t>(hello.context_limit(), in_kv));
}

std::string BoundOf(const wire::WorkerHello& hello) {
  if (ContextOf(hello) == hello.context_limit()) {
    return absl::StrCat("set by worker ", hello.worker_id());
  }
  return absl::StrCat("worker ", hello.worker_id(), " has ", hello.total_blocks(), " KV blocks of ",
                      hello.block_size(), " tokens; raise its kv_bytes");
}

}  // namespace

int WorkerDirectory::PairOf(const std::string& name) {
  const auto [found, fresh] = pair_numbers_.try_emplace(name, pairs());
  if (fresh) {
    TR_CHECK(pairs() < kMaxPairs) << name;
    pairs_.push_back(std::make_unique<Pair>());
    pairs_.back()->name = name;
  }
  return found->second;
}

std::optional<int> WorkerDirectory::FindPair(const std::string& name) const {
  const auto found = pair_numbers_.find(name);
  if (found == pair_numbers_.end()) return std::nullopt;
  return found->second;
}

absl::Status WorkerDirectory::Judge(const wire::WorkerHello& hello) const {
  if (hello.protocol_version() != kProtocolVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("worker ", hello.worker_id(), " speaks protocol version ",
                     hello.protocol_version(), ", this scheduler speaks ", kProtocolVersion));
  }
  if (hello.role() != api::ROLE_SMALL && hello.role() != api::ROLE_LARGE) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", hello.worker_id(), " has role ",
                                                   static_cast<int>(hello.role()),
                                                   "; allowed: small, large"));
  }
  if (hello.worker_id().empty() || hello.pair().empty() || hello.context_limit() <= 0 ||
      hello.usable_ids() <= 0 || hello.max_sequences() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker '", hello.worker_id(), "' of pair '", hello.pair(), "' has context limit ",
        hello.context_limit(), ", usable ids ", hello.usable_ids(), ", max sequences ",
        hello.max_sequences(), "; names must be set and limits positive"));
  }
  if (!MayKnow(hello.pair())) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "worker ", hello.worker_id(), " is of the new pair ", hello.pair(), ", but this scheduler ",
        "knows ", pairs(), " pairs already; the limit is ", kMaxPairs));
  }
  const std::optional<int> known = FindPair(hello.pair());
  return known ? JudgeAgainstPair(hello, pair(*known)) : absl::OkStatus();
}

absl::Status WorkerDirectory::JudgeAgainstPair(const wire::WorkerHello& hello,
                                               const Pair& pair) const {
  for (int role = 0; role < kRoles; ++role) {
    for (const StreamId stream : pair.workers[role]) {
      const wire::WorkerHello& peer = Find(stream)->hello;
      if (peer.tokenizer_fingerprint() != hello.tokenizer_fingerprint()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "worker ", hello.worker_id(), " has tokenizer ", hello.tokenizer_fingerprint(),
            " but pair ", pair.name, " runs with ", peer.tokenizer_fingerprint(), " of worker ",
            peer.worker_id(), "; both models of a pair need the same tokenizer"));
      }
      if (peer.role() == hello.role() && peer.model() != hello.model()) {
        return absl::FailedPreconditionError(
            absl::StrCat("worker ", hello.worker_id(), " runs model ", hello.model(), " but pair ",
                         pair.name, " runs ", peer.model(), " in that role"));
      }
    }
  }
  return absl::OkStatus();
}

AttachedWorker* WorkerDirectory::Add(StreamId stream, const wire::WorkerHello& hello,
                                     absl::Time now) {
  auto worker = std::make_unique<AttachedWorker>();
  worker->stream = stream;
  worker->hello = hello;
  worker->role = CheckedRole(hello.role());
  worker->pair = PairOf(hello.pair());
  worker->numerics_class = InternClass(hello.numerics_class());
  worker->pulse.heard_at = now;
  worker->free_blocks = hello.total_blocks();
  if (worker->role == Role::kLarge) {
    worker->kv = KvLedger(hello.total_blocks(), hello.block_size());
  }
  for (const wire::HeldSequence& held : hello.held()) {
    worker->held[{held.request_id(), held.choice()}] = held.length();
  }
  worker->hello.clear_held();
  Pair* const pair = pairs_[worker->pair].get();
  pair->workers[static_cast<int>(worker->role)].insert(stream);
  if (!hello.device_key().empty()) devices_[hello.device_key()].members.insert(stream);
  AttachedWorker* const added = worker.get();
  TR_CHECK(workers_.emplace(stream, std::move(worker)).second) << "stream " << stream;
  Refresh(pair);
  return added;
}

void WorkerDirectory::Remove(StreamId stream, absl::Time now) {
  const auto found = workers_.find(stream);
  TR_CHECK(found != workers_.end()) << stream;
  const AttachedWorker& worker = *found->second;
  Pair* const pair = pairs_[worker.pair].get();
  const int role = static_cast<int>(worker.role);
  pair->workers[role].erase(stream);
  if (pair->workers[role].empty()) pair->empty_since[role] = now;
  const auto device = devices_.find(worker.hello.device_key());
  if (device != devices_.end()) {
    device->second.members.erase(stream);
    if (device->second.members.empty()) devices_.erase(device);
  }
  workers_.erase(found);
  Refresh(pair);
}

void WorkerDirectory::Refresh(Pair* pair) {
  if (pair->workers[0].empty() && pair->workers[1].empty()) return;
  // A role without workers keeps the limits of its last workers.
  int32_t context = 0;
  std::string bound;
  int32_t usable = 0;
  std::vector<int32_t> stops;
  for (int role = 0; role < kRoles; ++role) {
    for (const StreamId stream : pair->workers[role]) {
      const wire::WorkerHello& hello = Find(stream)->hello;
      if (context == 0 || ContextOf(hello) < context) {
        context = ContextOf(hello);
        bound = BoundOf(hello);
      }
      usable = usable == 0 ? hello.usable_ids() : std::min(usable, hello.usable_ids());
      stops.insert(stops.end(), hello.eos_ids().begin(), hello.eos_ids().end());
      pair->model[role] = hello.model();
    }
  }
  const bool whole = !pair->workers[0].empty() && !pair->workers[1].empty();
  if (!whole && pair->context_limit > 0) {
    if (pair->context_limit < context) {
      context = pair->context_limit;
      bound = pair->context_bound;
    }
    usable = std::min(usable, pair->usable_ids);
    stops.insert(stops.end(), pair->stop_ids.begin(), pair->stop_ids.end());
  }
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  pair->context_limit = context;
  pair->context_bound = std::move(bound);
  pair->usable_ids = usable;
  pair->stop_ids = std::move(stops);
}

AttachedWorker* WorkerDirectory::Find(StreamId stream) const {
  const auto found = workers_.find(stream);
  return found == workers_.end() ? nullptr : found->second.get();
}

AttachedWorker* WorkerDirectory::FindById(const std::string& worker_id) const {
  for (const auto& [stream, worker] : workers_) {
    if (worker->hello.worker_id() == worker_id) return worker.get();
  }
  return nullptr;
}

std::vector<StreamId> WorkerDirectory::Streams() const {
  std::vector<StreamId> streams;
  streams.reserve(workers_.size());
  for (const auto& [stream, worker] : workers_) streams.push_back(stream);
  return streams;
}

Device* WorkerDirectory::DeviceOf(const AttachedWorker& worker) {
  const auto found = devices_.find(worker.hello.device_key());
  return found == devices_.end() ? nullptr : &found->second;
}

bool WorkerDirectory::NeedsLease(const AttachedWorker& worker) const {
  const auto device = devices_.find(worker.hello.device_key());
  if (device == devices_.end()) return false;
  for (const StreamId member : device->second.members) {
    if (Find(member)->role != worker.role) return true;
  }
  return false;
}

bool WorkerDirectory::SharesDevice(int pair) const {
  for (const auto& [key, device] : devices_) {
    bool present[kRoles] = {};
    for (const StreamId stream : device.members) {
      const AttachedWorker& worker = *Find(stream);
      if (worker.pair == pair) present[static_cast<int>(worker.role)] = true;
    }
    if (present[0] && present[1]) return true;
  }
  return false;
}

absl::Duration WorkerDirectory::MaxStep(int pair) const {
  absl::Duration least = absl::InfiniteDuration();
  for (const auto& [stream, worker] : workers_) {
    const int64_t most_us = worker->hello.max_step_us();
    if (worker->pair != pair || most_us <= 0) continue;
    least = std::min<absl::Duration>(least, absl::Microseconds(most_us));
  }
  return least;
}

int WorkerDirectory::InternClass(const std::string& numerics_class) {
  return classes_.try_emplace(numerics_class, static_cast<int>(classes_.size()) + 1).first->second;
}

}  // namespace tokenrouter
