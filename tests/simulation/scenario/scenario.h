// Scenario is all that a seed decides about a simulated deployment before it runs: what there is,
// what clients ask for, and which faults happen when. Drawing it is pure; Describe prints it ahead
// of a timeline. The run itself draws delays from the same seed.
// scenario.cc draws what there is, scenario_clients.cc the requests, fault_schedule.cc the faults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/scheduler/options/core_options.h"
#include "tests/simulation/process/client.h"
#include "tests/simulation/process/simulated_worker.h"
#include "tests/simulation/scenario/faults.h"

namespace tokenrouter::simulation {

// Prompts use ids below kPoison; a prompt that begins with kPoison crashes engines.
inline constexpr int32_t kUsableIds = 500;
inline constexpr TokenId kPoison = 498;
inline constexpr TokenId kEos = 499;

struct PairScenario {
  std::string name;
  HashModelOptions models[kRoles];
  bool shared_device = false;
};

struct ClientScenario {
  ClientPlan plan;
  int gateway = 0;
};

struct Scenario {
  uint64_t seed = 0;
  CoreOptions options;
  WireDelays delays;
  absl::Duration submit_wait;    // LinkOptions::submit_wait and resume_wait.
  absl::Duration faults_within;  // Requests and faults begin in this time.
  bool strict = true;            // Waits outlast faults: each request must be answered.
  bool classes_differ = false;   // Answers may be marked degraded; their tokens are the same.
  bool mode_varies = false;      // The service mode is not fixed ...
  bool mode_flips = false;       // ... and is forced to and fro.
  std::vector<PairScenario> pairs;
  std::vector<WorkerSetup> workers;   // Their pair's name is in WorkerCoreOptions.
  std::vector<std::string> gateways;  // The name of each one's pair.
  std::vector<ClientScenario> clients;
  std::vector<Fault> faults;  // By time.

  const PairScenario& PairOf(const std::string& name) const;
};

Scenario DrawScenario(uint64_t seed);
std::string Describe(const Scenario& scenario);

// ---- parts of DrawScenario ----
void DrawClients(RandomSource* random, Scenario* scenario);
void DrawFaults(RandomSource* random, Scenario* scenario);

}  // namespace tokenrouter::simulation
