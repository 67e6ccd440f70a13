// World is one simulated deployment and its faults, all drawn from one seed: workers, gateways,
// requests, faults. Run plays it to the end and returns what went wrong, if anything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/simulated_gateway.h"
#include "tests/simulation/simulated_worker.h"

namespace tokenrouter::simulation {

struct WorldOutcome {
  std::string failure;  // Empty: every invariant held.
  uint64_t events = 0;
  uint64_t tokens = 0;       // Tokens that clients got.
  uint64_t large_alone = 0;  // Of these tokens, those written under large-only service.
  // A hash of everything that clients got and when; equal for equal seeds.
  uint64_t fingerprint = 0;
  int faults = 0;
};

class World {
 public:
  explicit World(uint64_t seed);
  WorldOutcome Run();

 private:
  void BuildWorkers();
  void BuildRequests();
  ClientPlan DrawRequest(int number);
  void PlanFaults();
  void DrawBounds(wire::GenerationSpec* spec);
  void DrawSampling(wire::GenerationSpec* spec);
  void Fault();
  absl::Duration DrawPause();
  void DrawPolicy();
  void KillWorker();
  void KillScheduler();
  void FlipMode();

  std::string CheckAnswers() const;
  std::string CheckAnswer(const ClientRecord& record) const;
  std::string CheckIds(const ClientRecord& record) const;
  std::string CheckMarks(const ClientRecord& record) const;
  std::string CheckFlipped(const ClientRecord& record) const;
  std::string CheckMemory() const;
  std::string CheckDevice() const;
  bool Quiet() const;
  std::string Describe() const;

  RandomSource random_;
  EventQueue events_;
  WireDelays delays_;
  CoreOptions options_;
  HashModelOptions models_[kRoles];
  int faults_planned_ = 0;
  bool strict_ = true;  // All timeouts outlast every fault, so each request must be answered.
  bool classes_differ_ = false;  // Answers may be marked degraded; their tokens are the same.
  // No fault hits a worker: no pool is ever gone, whatever becomes of scheduler and gateways.
  bool workers_stay_ = false;
  // The service mode changes: at random times, or as the scheduler chooses.
  bool mode_varies_ = false;
  DeviceUse device_;
  bool shared_device_ = false;
  std::unique_ptr<SimulatedScheduler> scheduler_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::vector<std::unique_ptr<SimulatedGateway>> gateways_;
};

}  // namespace tokenrouter::simulation
