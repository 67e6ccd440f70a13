// Thousands of simulated deployments, each drawn from a seed.
//   scheduler_simulation_test [--seeds=N] [--first=N]    seeds first .. first+N-1
//   scheduler_simulation_test --seed=N                   one seed again, with its timeline
// The first seed that fails prints its scenario and timeline; each prints how to run it again.
#include <csignal>
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
// After so many failures the rest would say nothing new.
constexpr uint64_t kMostFailures = 20;

// The seed that runs now, for the handler of a failed check.
uint64_t running = 0;

void PrintReplay(uint64_t seed) {
  std::printf("replay: scheduler_simulation_test --seed=%llu\n",
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
}

// A failed check aborts; the test dies of it, but says which seed it was.
void OnAbort(int /*signal*/) {
  std::signal(SIGABRT, SIG_DFL);
  PrintReplay(running);
}

bool RunSeed(uint64_t seed, WorldOutcome* total) {
  running = seed;
  const WorldOutcome outcome = World(seed).Run();
  total->events += outcome.events;
  total->tokens += outcome.tokens;
  total->large_alone += outcome.large_alone;
  total->answered += outcome.answered;
  total->given_up += outcome.given_up;
  total->faults += outcome.faults;
  std::string failure = outcome.failure;
  if (failure.empty() && seed % kReplayEvery == 0 &&
      World(seed).Run().fingerprint != outcome.fingerprint) {
    failure = "two runs of this seed differ: something depends on more than the seed";
  }
  if (failure.empty()) return true;
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), failure.c_str());
  PrintReplay(seed);
  return false;
}

void PrintTimeline(uint64_t seed) {
  running = seed;
  World world(seed);
  world.PrintTimeline();
  (void)world.Run();
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
  std::signal(SIGABRT, OnAbort);
  WorldOutcome total;
  uint64_t failed = 0;
  if (seeds == 1) PrintTimeline(first);
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    if (RunSeed(seed, &total)) continue;
    // One timeline is what a person reads; the others are a command away.
    if (++failed == 1 && seeds > 1) PrintTimeline(seed);
    if (failed == kMostFailures) break;
  }
  std::printf(
      "%llu seeds, %llu failed, %llu events, %llu tokens (%llu large-only), "
      "%llu answered, %llu given up, %llu faults\n",
      static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(total.events), static_cast<unsigned long long>(total.tokens),
      static_cast<unsigned long long>(total.large_alone),
      static_cast<unsigned long long>(total.answered),
      static_cast<unsigned long long>(total.given_up),
      static_cast<unsigned long long>(total.faults));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tokenrouter::simulation

int main(int argc, char** argv) { return tokenrouter::simulation::Main(argc, argv); }
