// Thousands of simulated deployments, each drawn from a seed.
//   scheduler_simulation_test [--seeds=N] [--first=N]    seeds first .. first+N-1
//   scheduler_simulation_test --seed=N                   one seed again
#include <cstdint>
#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "tests/simulation/world.h"

namespace tokenrouter::simulation {
namespace {

// One in this many seeds runs twice, and both runs must agree.
constexpr uint64_t kReplayEvery = 50;

bool RunSeed(uint64_t seed, WorldOutcome* total) {
  const WorldOutcome outcome = World(seed).Run();
  total->events += outcome.events;
  total->tokens += outcome.tokens;
  total->large_alone += outcome.large_alone;
  total->faults += outcome.faults;
  std::string failure = outcome.failure;
  if (failure.empty() && seed % kReplayEvery == 0 &&
      World(seed).Run().fingerprint != outcome.fingerprint) {
    failure = "two runs of this seed differ: something depends on more than the seed";
  }
  if (failure.empty()) return true;
  std::printf("seed %llu: %s\nreplay: scheduler_simulation_test --seed=%llu\n",
              static_cast<unsigned long long>(seed), failure.c_str(),
              static_cast<unsigned long long>(seed));
  return false;
}

int Main(int argc, char** argv) {
  uint64_t first = 1;
  uint64_t seeds = 1000;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    bool understood = false;
    if (absl::ConsumePrefix(&argument, "--seed=")) {
      understood = absl::SimpleAtoi(argument, &first);
      seeds = 1;
    } else if (absl::ConsumePrefix(&argument, "--seeds=")) {
      understood = absl::SimpleAtoi(argument, &seeds);
    } else if (absl::ConsumePrefix(&argument, "--first=")) {
      understood = absl::SimpleAtoi(argument, &first);
    }
    if (!understood) {
      std::fprintf(stderr, "unknown argument %s; known: --seed=N --seeds=N --first=N\n", argv[i]);
      return 2;
    }
  }
  WorldOutcome total;
  uint64_t failed = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) failed += !RunSeed(seed, &total);
  std::printf("%llu seeds, %llu failed, %llu events, %llu tokens (%llu large-only), %d faults\n",
              static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(failed),
              static_cast<unsigned long long>(total.events),
              static_cast<unsigned long long>(total.tokens),
              static_cast<unsigned long long>(total.large_alone), total.faults);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tokenrouter::simulation

int main(int argc, char** argv) { return tokenrouter::simulation::Main(argc, argv); }
