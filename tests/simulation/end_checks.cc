// The part of World that looks for what is left once every request has ended: nothing.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/simulation/world.h"

namespace tokenrouter::simulation {

std::string World::CheckEnd() const {
  for (const std::string& failure :
       {CheckWorkers(), CheckScheduler(), CheckDevices(), CheckPoison()}) {
    if (!failure.empty()) return failure;
  }
  return "";
}

std::string World::CheckWorkers() const {
  for (const auto& worker : deployment_.workers) {
    if (worker->holds_memory()) {
      return absl::StrCat("memory is still in use: ", worker->Describe());
    }
  }
  return "";
}

std::string World::CheckScheduler() const {
  if (!deployment_.scheduler().running()) return "the scheduler is down";
  const SchedulerCore& core = deployment_.scheduler().core();
  if (core.requests().size() != 0) {
    return absl::StrCat("the scheduler still has ", core.requests().size(), " requests");
  }
  if (core.timers() != 0) return absl::StrCat(core.timers(), " timers are still armed");
  if (core.large_waiting() != 0) return "requests that have ended wait for a KV reservation";
  for (const auto& [stream, worker] : core.directory().workers()) {
    const std::string name = absl::StrCat("worker ", worker->hello.worker_id(), " ");
    if (!worker->open.empty()) return name + "still has open requests";
    if (!worker->closing.empty()) return name + "has not confirmed a close";
    if (!worker->releasable.empty()) return name + "still has grants to release";
    if (worker->kv.blocks_in_use() != 0) return name + "still has KV reservations";
    if (worker->suspect != 0) return name + "still keeps suspects apart";
    if (worker->ready != 0 || worker->uncomputed_ids != 0) return name + "still counts ready rows";
  }
  return "";
}

std::string World::CheckDevices() const {
  // A stream that is full ends, and with it the lease of a step that runs.
  if (!scenario_.faults.empty() || scenario_.delays.most_unread < WireDelays().most_unread) {
    return "";
  }
  for (const auto& device : deployment_.devices) {
    if (deployment_.scheduler().expired_leases() > 0 || device->worst <= 1) continue;
    return absl::StrCat(device->worst, " workers computed on one device at once");
  }
  return "";
}

// A prompt that crashes engines is tried so often in each term, on either side.
std::string World::CheckPoison() const {
  int crashes = 0;
  for (const auto& worker : deployment_.workers) crashes += worker->troubles().poisoned;
  int terms = 2;
  for (const auto& scheduler : deployment_.schedulers) terms += scheduler->restarts();
  int prompts = 0;
  for (const ClientScenario& client : scenario_.clients) prompts += client.plan.poison ? 1 : 0;
  const int most = prompts * terms * kRoles * scenario_.options.max_worker_losses;
  if (crashes <= most) return "";
  return absl::StrCat(crashes, " workers crashed on ", prompts, " prompts in ", terms, " terms");
}

}  // namespace tokenrouter::simulation
