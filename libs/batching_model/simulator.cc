#include "libs/batching_model/simulator.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/batching_model/simulation.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr int kMostWorkers = 64;
constexpr double kSumTolerance = 1e-6;  // Of a distribution.

absl::Status InRange(const char* field, bool inside, double value, const char* allowed) {
  if (inside) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; allowed: ", allowed));
}

absl::Status CheckCommitted(const std::vector<double>& mass) {
  if (mass.empty()) return absl::OkStatus();
  double sum = 0;
  for (const double share : mass) {
    TR_RETURN_IF_ERROR(InRange("a share of committed", share >= 0, share, "0 or more"));
    sum += share;
  }
  return InRange("the sum of committed", std::abs(sum - 1) < kSumTolerance, sum, "1");
}

}  // namespace

absl::Status CheckSetup(const SimulationSetup& setup) {
  TR_RETURN_IF_ERROR(InRange("requests", setup.requests >= 1 && setup.requests <= 1 << 16,
                             setup.requests, "1 to 65536"));
  TR_RETURN_IF_ERROR(InRange("r", setup.r > 0 && setup.r < 1, setup.r, "(0, 1)"));
  TR_RETURN_IF_ERROR(InRange("q", setup.q > 0 && setup.q <= 1, setup.q, "(0, 1]"));
  TR_RETURN_IF_ERROR(
      InRange("noise_cv", setup.noise_cv >= 0 && setup.noise_cv <= 1, setup.noise_cv, "[0, 1]"));
  TR_RETURN_IF_ERROR(
      InRange("hop_ms", setup.hop_ms >= 0 && setup.hop_ms <= 1000, setup.hop_ms, "[0, 1000]"));
  TR_RETURN_IF_ERROR(
      InRange("max_step_ms", setup.max_step_ms >= 0, setup.max_step_ms, "0 (no limit) or more"));
  TR_RETURN_IF_ERROR(CheckCommitted(setup.committed));
  const int most = setup.shared_device ? 1 : kMostWorkers;
  const char* const allowed = setup.shared_device ? "1 on a shared device" : "1 to 64";
  TR_RETURN_IF_ERROR(InRange("small_workers",
                             setup.small_workers >= 1 && setup.small_workers <= most,
                             setup.small_workers, allowed));
  TR_RETURN_IF_ERROR(InRange("large_workers",
                             setup.large_workers >= 1 && setup.large_workers <= most,
                             setup.large_workers, allowed));
  return InRange("duration_ms", setup.duration_ms > 0, setup.duration_ms, "> 0");
}

absl::StatusOr<SimulationResult> Simulate(const SimulationSetup& setup,
                                          const BatchingPolicy& policy) {
  TR_RETURN_IF_ERROR(CheckSetup(setup));
  const bool idle_waits = !setup.shared_device && policy.kind == BatchingPolicy::Kind::kStatic;
  TR_RETURN_IF_ERROR(InRange(
      "m_small + m_large", !idle_waits || policy.m_small + policy.m_large <= setup.requests + 1,
      policy.m_small + policy.m_large, "at most requests + 1, or both queues can wait for ever"));
  return Simulation(setup, policy).Run();
}

double AloneRate(const StepCost& cost, int requests) {
  return 1000.0 * requests / cost(requests, requests);
}

}  // namespace tokenrouter
