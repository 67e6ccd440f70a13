#include "tools/simulate/simulate_options.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libs/batching_model/policy_name.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr int kMostRequests = 4096;
constexpr double kLeastRate = 0.001, kMostRate = 0.999;
constexpr double kLongestSeconds = 1e6;
constexpr double kShortestStepMs = 1e-3;  // A step of one row; 0 would never let time pass.

// The flags as they are typed, before lists and curves are read.
struct Typed {
  std::string set = "h200", small, large;
  std::string policies = "model,greedy";
  int64_t seed = 1;
};

absl::Status Refuse(absl::string_view flag, absl::string_view value, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, "; allowed: ", allowed));
}

absl::StatusOr<StepCurve> ParseCurve(absl::string_view flag, const std::string& text, Role role) {
  absl::StatusOr<StepCurve> curve = StepCurve::Parse(text, role);
  if (!curve.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--", flag, ": ", curve.status().message()));
  }
  if (curve->noise > 0) return Refuse(flag, text, "curves without cv: --noise says it for both");
  if (absl::ToDoubleMilliseconds(curve->Mean(1, 1)) < kShortestStepMs) {
    return Refuse(
        flag, text,
        absl::StrCat("curves whose step of one row takes ", kShortestStepMs, " ms at least"));
  }
  return curve;
}

absl::StatusOr<std::vector<BatchingPolicy::Kind>> ParsePolicies(const std::string& text) {
  if (text == "all") return AllPolicyKinds();
  std::vector<BatchingPolicy::Kind> kinds;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const auto kind = ParsePolicyKind(name);
    if (!kind.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--policy: ", kind.status().message(), ", with commas, or all"));
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

absl::Status ReadTyped(const Typed& typed, SimulateOptions* options) {
  const bool custom = !typed.small.empty() || !typed.large.empty();
  options->set = custom ? "custom" : typed.set;
  TR_ASSIGN_OR_RETURN(options->small, typed.small.empty()
                                          ? ParseCurve("set", typed.set, Role::kSmall)
                                          : ParseCurve("small", typed.small, Role::kSmall));
  TR_ASSIGN_OR_RETURN(options->large, typed.large.empty()
                                          ? ParseCurve("set", typed.set, Role::kLarge)
                                          : ParseCurve("large", typed.large, Role::kLarge));
  TR_ASSIGN_OR_RETURN(options->policies, ParsePolicies(typed.policies));
  options->seed = static_cast<uint64_t>(typed.seed);
  return absl::OkStatus();
}

}  // namespace

SimulationSetup SimulateOptions::Setup(int requests, double r) const {
  const auto cost = [](const StepCurve& curve) {
    return [curve](int rows, int64_t ids) {
      return absl::ToDoubleMilliseconds(curve.Mean(rows, ids));
    };
  };
  return {.small = cost(small),
          .large = cost(large),
          .shared_device = devices == 1,
          .small_workers = small_workers,
          .large_workers = large_workers,
          .distributed = distributed,
          .requests = requests,
          .r = r,
          .q = q,
          .noise_cv = noise,
          .hop_ms = hop_ms,
          .max_step_ms = max_step_ms,
          .duration_ms = 1000.0 * seconds,
          .desynchronised = true,
          .seed = seed};
}

absl::StatusOr<std::optional<SimulateOptions>> ParseSimulateOptions(int argc,
                                                                    const char* const* argv) {
  Typed typed;
  SimulateOptions options;
  Settings settings("simulate", "simulates routed decoding on two devices or a shared one");
  settings.Add("set", &typed.set,
               "step curves: h200, 8b, cpu, vnni, roofline, fast, or base=MS,row=MS,id=MS");
  settings.Add("small", &typed.small, "curve of the small model instead of the set's");
  settings.Add("large", &typed.large, "curve of the large model instead of the set's");
  settings.Add("n", &options.requests, 1, kMostRequests, "requests that decode at once, a list");
  settings.Add("r", &options.r, kLeastRate, kMostRate,
               "share of small steps' rows that are routed, a list");
  settings.Add("policy", &typed.policies,
               "list of model, greedy, static, fixed_wait, longest_queue; or all");
  settings.Add("q", &options.q, kLeastRate, 1.0,
               "probability that the large model hands back after a token");
  settings.Add("devices", &options.devices, 1, 2, "2: one per model; 1: a shared one");
  settings.Add("small_workers", &options.small_workers, 1, 64, "each on a dedicated device");
  settings.Add("large_workers", &options.large_workers, 1, 64, "each on a dedicated device");
  settings.Add("distributed", &options.distributed,
               "small workers decide alone, from the messages about the large side's steps");
  settings.Add("noise", &options.noise, 0.0, 1.0, "relative spread of step times");
  settings.Add("hop_ms", &options.hop_ms, 0.0, 1000.0,
               "handoff latency of a row between the models, or of a change of the lease");
  settings.Add("max_step_ms", &options.max_step_ms, 0.0, 1e6,
               "a step takes rows only while it lasts no longer; 0: all that wait");
  settings.Add("seconds", &options.seconds, 1.0, kLongestSeconds, "simulated time of a cell");
  settings.Add("seed", &typed.seed, 0, INT64_MAX, "of the random numbers");
  settings.Add("json", &options.json, "print JSON rows instead of a table");
  settings.Add("plot", &options.plot, "write an SVG of multiples of the large model alone there");
  TR_ASSIGN_OR_RETURN(const bool run, settings.Parse(argc, argv));
  if (!run) return std::nullopt;
  TR_RETURN_IF_ERROR(ReadTyped(typed, &options));
  return options;
}

}  // namespace tokenrouter
