// The part of DrawScenario that draws which faults happen and when.
#include <algorithm>
#include <vector>

#include "tests/simulation/scenario/scenario.h"

namespace tokenrouter::simulation {
namespace {

constexpr int kScenariosWithoutFaults = 4;  // One scenario in this many has no faults.

std::vector<FaultKind const*> DrawKinds(RandomSource* random) {
  std::vector<FaultKind const*> kinds;
  const auto add = [&kinds](std::span<const FaultKind> some) {
    for (const FaultKind& kind : some) kinds.insert(kinds.end(), kind.weight, &kind);
  };
  // Without faults of workers no pool is ever gone, whatever becomes of the others.
  if (random->Chance(0.8)) add(WorkerFaults());
  add(GatewayFaults());
  add(SchedulerFaults());
  return kinds;
}

absl::Duration DrawLength(RandomSource* random) {
  return random->Chance(0.5) ? absl::Milliseconds(random->Between(1, 200))
                             : absl::Milliseconds(random->Between(200, 8000));
}

// Most faults hit while some request is served: short after one begins.
absl::Duration DrawTime(RandomSource* random, const Scenario& scenario) {
  if (random->Chance(0.3)) return random->Between(absl::ZeroDuration(), scenario.faults_within);
  const auto client =
      static_cast<size_t>(random->Between(0, static_cast<int64_t>(scenario.clients.size()) - 1));
  return scenario.clients[client].plan.starts_after +
         random->Between(absl::ZeroDuration(), absl::Milliseconds(400));
}

}  // namespace

void DrawFaults(RandomSource* random, Scenario* scenario) {
  if (random->Between(1, kScenariosWithoutFaults) == 1) return;
  const std::vector<FaultKind const*> kinds = DrawKinds(random);
  const bool many = scenario->faults_within > absl::Seconds(1) && random->Chance(0.3);
  const int64_t faults = random->Between(1, many ? 16 : 6);
  for (int64_t i = 0; i < faults; ++i) {
    Fault fault;
    fault.kind =
        kinds[static_cast<size_t>(random->Between(0, static_cast<int64_t>(kinds.size()) - 1))];
    // Many at once, too.
    const bool with_last = !scenario->faults.empty() && random->Chance(0.15);
    fault.at = with_last ? scenario->faults.back().at : DrawTime(random, *scenario);
    fault.lasts = DrawLength(random);
    fault.pick = random->Bits();
    fault.hard = random->Chance(0.3);
    scenario->faults.push_back(fault);
  }
  std::stable_sort(scenario->faults.begin(), scenario->faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

}  // namespace tokenrouter::simulation
