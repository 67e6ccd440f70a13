// World plays the scenario of one seed to its end and returns what went wrong, if anything.
// world.cc builds and runs it; answer_checks.cc and end_checks.cc judge the outcome.
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/scenario/deployment.h"
#include "tests/simulation/scenario/scenario.h"

namespace tokenrouter::simulation {

struct WorldOutcome {
  std::string failure;  // Empty: every invariant held.
  uint64_t events = 0;
  uint64_t tokens = 0;       // Tokens that clients got.
  uint64_t large_alone = 0;  // Of these tokens, those written under large-only service.
  uint64_t answered = 0;     // Requests that ended as they would have without faults.
  uint64_t given_up = 0;     // Requests that ended with an error.
  // A hash of everything that clients got and when; equal for equal seeds.
  uint64_t fingerprint = 0;
  uint64_t faults = 0;
};

class World {
 public:
  explicit World(uint64_t seed);
  // The scenario and every event are printed.
  void PrintTimeline();
  WorldOutcome Run();

 private:
  void BuildSchedulers();
  void BuildPeers();
  void FlipMode();
  void Resubmit(const ClientRecord& record);
  void JudgeGivenUpPool(const SimulatedScheduler* scheduler, const std::string& pair, Role role);
  void JudgeDeadWorker(const SimulatedScheduler* scheduler, const std::string& worker_id,
                       const absl::Status& why);
  void Complain(const std::string& what);
  bool Quiet() const;
  WorldOutcome Count() const;
  std::string Describe() const;

  // ---- answer_checks.cc ----
  std::string CheckAnswers() const;
  std::string CheckAnswer(const ClientRecord& record) const;
  std::string CheckRefusal(const ClientRecord& record) const;
  std::string CheckTime(const ClientRecord& record) const;
  std::string CheckIds(const ClientRecord& record) const;
  std::string CheckMarks(const ClientRecord& record) const;
  std::string CheckFlipped(const ClientRecord& record) const;
  int Disturbances(const ClientRecord& record) const;
  bool MayBeSuspected(const ClientRecord& record) const;

  // ---- end_checks.cc ----
  std::string CheckEnd() const;
  std::string CheckWorkers() const;
  std::string CheckScheduler() const;
  std::string CheckDevices() const;
  std::string CheckPoison() const;

  const Scenario scenario_;
  Deployment deployment_;
  int clients_running_ = 0;  // Clients whose request has not ended for good.
  std::string complaint_;    // The first thing that was found wrong while it ran.
};

}  // namespace tokenrouter::simulation
