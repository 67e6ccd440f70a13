#include "libs/batching_offline/exact_solver.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "libs/batching_offline/exact_iteration.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr int kMostRequests = 24;
constexpr int kMostGridSteps = 4096;
// The chain of decisions can be periodic (both sides start and end together), where weak damping
// never settles (batching model, section 1); where large steps last hundreds of small ones the rate
// must follow more slowly than the values.
constexpr ExactIteration::Pace kPaces[] = {{0.5, 0.5}, {0.3, 0.5}, {0.5, 0.1}, {0.5, 0.02}};
constexpr double kAgreement = 0.01;  // Between iteration and simulation, relative.

absl::Status Check(const ExactProblem& problem) {
  const int n = problem.requests;
  if (n < 1 || n > kMostRequests) {
    return absl::InvalidArgumentError(
        absl::StrCat("requests is ", n, "; allowed: 1 to ", kMostRequests));
  }
  if (!(problem.r > 0 && problem.r < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("r is ", problem.r, "; allowed: (0, 1)"));
  }
  if (!(problem.q > 0 && problem.q <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("q is ", problem.q, "; allowed: (0, 1]"));
  }
  const size_t least = static_cast<size_t>(n) + 1;
  if (problem.small.size() < least || problem.large.size() < least) {
    return absl::InvalidArgumentError(absl::StrCat("step times for ", problem.small.size(), " and ",
                                                   problem.large.size(), " rows; needed: ", least));
  }
  double longest = 0;
  for (int b = 1; b <= n; ++b) {
    if (!(problem.small[b] > 0 && problem.large[b] > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("the step time of ", b, " rows is not > 0"));
    }
    longest = std::max({longest, problem.small[b], problem.large[b]});
  }
  if (!(problem.grid_ms > 0) || longest / problem.grid_ms > kMostGridSteps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "grid_ms is ", problem.grid_ms, "; allowed: from ", longest / kMostGridSteps, " up"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExactSolution> SolveTwoDevices(const ExactProblem& problem) {
  TR_RETURN_IF_ERROR(Check(problem));
  ExactSolution solution;
  for (const ExactIteration::Pace& pace : kPaces) {
    ExactIteration iteration(problem, pace);
    const bool settled = iteration.Run();
    solution = iteration.Solution();
    solution.simulated_rows_per_s = iteration.SimulateRows();
    const double ratio = solution.simulated_rows_per_s / solution.rows_per_s;
    if (settled && std::abs(ratio - 1) <= kAgreement) return solution;
  }
  return absl::InternalError(absl::StrCat(
      "exact solver: after ", solution.sweeps, " sweeps the rate is ", solution.rows_per_s,
      " rows/s but its policy gives ", solution.simulated_rows_per_s));
}

}  // namespace tokenrouter
