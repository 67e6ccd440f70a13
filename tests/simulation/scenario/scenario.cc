#include "tests/simulation/scenario/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/batching_model/policy_name.h"
#include "libs/status/check.h"

namespace tokenrouter::simulation {
namespace {

CoreOptions DrawOptions(RandomSource* random) {
  CoreOptions options;
  options.credit = random->Chance(0.5) ? 64 : static_cast<Position>(random->Between(2, 24));
  options.string_stop_credit = std::min<Position>(16, options.credit);
  options.large_pool_gone = LargePoolGone::kWait;
  options.no_large_worker_timeout = options.no_small_worker_timeout = absl::Minutes(3);
  options.admission_timeout = absl::Minutes(30);
  options.keep_unclaimed = absl::Seconds(1);
  options.lease_max = absl::Milliseconds(random->Between(5, 50));
  options.large_alone_window = static_cast<int32_t>(random->Between(1, 40));
  options.shared_threshold = static_cast<int>(random->Between(0, 3));
  options.large_prefill = static_cast<LargePrefill>(random->Between(0, 3));
  options.evict_overdue_after = absl::Milliseconds(random->Between(0, 200));
  options.batching = {.kind = AllPolicyKinds()[random->Between(0, 4)],
                      .m_small = static_cast<int>(random->Between(1, 4)),
                      .m_large = static_cast<int>(random->Between(1, 5)),
                      .wait_small_ms = 0.1 * static_cast<double>(random->Between(0, 40)),
                      .wait_large_ms = 0.1 * static_cast<double>(random->Between(0, 100))};
  options.defer_cap = absl::Milliseconds(random->Between(1, 300));
  return options;
}

// A third of the scenarios may give up on requests. They check that each request ends once, for a
// declared reason, and that the tokens it got are right.
void DrawPolicy(RandomSource* random, Scenario* scenario) {
  CoreOptions& options = scenario->options;
  scenario->classes_differ = random->Chance(0.2);
  scenario->strict = random->Chance(0.67);
  scenario->submit_wait = absl::Minutes(3);
  if (scenario->strict) return;
  if (random->Chance(0.5)) scenario->submit_wait = absl::Milliseconds(random->Between(100, 5000));
  options.large_pool_gone = static_cast<LargePoolGone>(random->Between(0, 2));
  options.no_large_worker_timeout = options.no_small_worker_timeout =
      absl::Milliseconds(random->Between(0, 300));
  options.admission_timeout = absl::Milliseconds(random->Between(1, 300));
  if (random->Chance(0.5)) options.max_requests = static_cast<int>(random->Between(2, 8));
  options.max_queued = static_cast<int>(random->Between(0, 3));
}

// Most are small, since small ones find most faults soonest; some are as large as a cluster.
enum class Size { kSmall, kMiddle, kLarge };
Size DrawSize(RandomSource* random) {
  const int64_t die = random->Between(1, 20);
  return die == 1 ? Size::kLarge : die <= 5 ? Size::kMiddle : Size::kSmall;
}

void DrawPairs(RandomSource* random, Scenario* scenario) {
  const int64_t pairs = random->Chance(0.15) ? 2 : 1;
  for (int64_t i = 0; i < pairs; ++i) {
    PairScenario pair;
    pair.name = absl::StrCat("pair", i);
    pair.shared_device = random->Chance(0.4);
    const uint64_t seed = random->Bits();
    for (const Role role : {Role::kSmall, Role::kLarge}) {
      pair.models[Index(role)] = {.seed = seed,
                                  .role = role,
                                  .acceptance_rate = 0.8,
                                  .usable_ids = kUsableIds,
                                  .eos_ids = {kEos},
                                  .eos_probability = 0.02};
    }
    scenario->pairs.push_back(pair);
  }
}

WorkerSetup DrawWorker(RandomSource* random, const Scenario& scenario, const PairScenario& pair,
                       Role role, int64_t number) {
  WorkerSetup setup;
  setup.core.role = role;
  setup.core.worker_id = absl::StrCat(pair.name, RoleName(role), number);
  setup.core.pair = pair.name;
  setup.core.tokenizer_fingerprint = "tokenizer";
  setup.core.eos_ids = {kEos};
  setup.core.device_key = pair.shared_device ? absl::StrCat("device of ", pair.name) : "";
  setup.core.max_sequences = static_cast<int32_t>(random->Between(1, 8));
  setup.core.max_rows = static_cast<int32_t>(random->Between(1, 16));
  setup.core.max_step_tokens = random->Chance(0.5) ? 512 : 80;
  setup.engine.model = pair.models[Index(role)];
  setup.engine.model_name = RoleName(role);
  if (scenario.classes_differ) setup.numerics_class = absl::StrCat(RoleName(role), number);
  setup.engine.context_limit = 128;
  setup.engine.block_size = 8;
  // One request fills up to 14 blocks.
  setup.engine.total_blocks =
      random->Chance(0.4) ? 1024 : static_cast<int64_t>(random->Between(16, 40));
  setup.step_base = absl::Microseconds(random->Between(300, 4000));
  setup.poison = kPoison;
  static constexpr double kPredicts[] = {0, 0, 1, 0.01, 30};
  setup.predicts = kPredicts[random->Between(0, 4)];
  return setup;
}

}  // namespace

const PairScenario& Scenario::PairOf(const std::string& name) const {
  const auto found = std::find_if(pairs.begin(), pairs.end(),
                                  [&name](const PairScenario& pair) { return pair.name == name; });
  TR_CHECK(found != pairs.end()) << name;
  return *found;
}

Scenario DrawScenario(uint64_t seed) {
  RandomSource random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.options = DrawOptions(&random);
  if (random.Chance(0.2)) scenario.delays.slow_share = 0.2;
  if (random.Chance(0.2)) scenario.delays.most_unread = static_cast<int>(random.Between(16, 64));
  DrawPolicy(&random, &scenario);
  DrawPairs(&random, &scenario);
  scenario.mode_varies = random.Chance(0.6);
  scenario.mode_flips = scenario.mode_varies && random.Chance(0.7);
  static constexpr absl::Duration kTimes[] = {absl::Milliseconds(600), absl::Seconds(20),
                                              absl::Minutes(4)};
  const int64_t die = random.Between(1, 10);
  scenario.faults_within = kTimes[die <= 6 ? 0 : die <= 9 ? 1 : 2];
  const Size size = DrawSize(&random);
  const int64_t most_workers = size == Size::kLarge ? 12 : size == Size::kMiddle ? 5 : 2;
  for (const PairScenario& pair : scenario.pairs) {
    for (const Role role : {Role::kSmall, Role::kLarge}) {
      const int64_t count = random.Between(1, most_workers);
      for (int64_t i = 0; i < count; ++i) {
        scenario.workers.push_back(DrawWorker(&random, scenario, pair, role, i));
      }
    }
    const int64_t gateways = random.Between(1, size == Size::kSmall ? 2 : 4);
    for (int64_t i = 0; i < gateways; ++i) scenario.gateways.push_back(pair.name);
  }
  const int64_t most_clients = size == Size::kLarge ? 64 : size == Size::kMiddle ? 24 : 8;
  scenario.clients.resize(static_cast<size_t>(random.Between(2, most_clients)));
  DrawClients(&random, &scenario);
  DrawFaults(&random, &scenario);
  return scenario;
}

std::string Describe(const Scenario& scenario) {
  const CoreOptions& options = scenario.options;
  static constexpr const char* kGone[] = {"fail", "small_only", "wait"};
  std::string text = absl::StrCat(
      "seed ", scenario.seed, scenario.strict ? ": every request must be answered" : ": lenient",
      "\n  large_pool_gone ", kGone[Index(options.large_pool_gone)], ", credit ", options.credit,
      ", large_prefill ", static_cast<int>(options.large_prefill), ", batching ",
      PolicyName(options.batching.kind), ", defer_cap ", absl::FormatDuration(options.defer_cap),
      "\n  service mode ",
      scenario.mode_flips    ? "forced to and fro"
      : scenario.mode_varies ? "as the scheduler chooses"
                             : "routed",
      scenario.classes_differ ? ", numerics classes differ" : "", ", streams hold ",
      scenario.delays.most_unread, " frames");
  for (const PairScenario& pair : scenario.pairs) {
    absl::StrAppend(&text, "\n  ", pair.name, pair.shared_device ? " on one device" : "", ":");
    for (const WorkerSetup& worker : scenario.workers) {
      if (worker.core.pair == pair.name) {
        absl::StrAppend(&text, " ", worker.core.worker_id, " (", worker.core.max_sequences,
                        " sequences, ", worker.engine.total_blocks, " blocks)");
      }
    }
    for (size_t i = 0; i < scenario.gateways.size(); ++i) {
      if (scenario.gateways[i] == pair.name) absl::StrAppend(&text, " gateway", i);
    }
  }
  for (const ClientScenario& client : scenario.clients) {
    const ClientPlan& plan = client.plan;
    absl::StrAppend(
        &text, "\n  ", absl::FormatDuration(plan.starts_after), " ", plan.spec.request_id(),
        " at gateway", client.gateway, ": ", plan.spec.routing().algorithm(), ", ",
        plan.prompt.size(), " + ", plan.spec.stop().max_new_tokens(), " ids",
        plan.spec.deadline_ms() > 0 ? absl::StrCat(", deadline ", plan.spec.deadline_ms(), " ms")
                                    : "",
        plan.poison ? ", poison" : "", plan.resubmits ? ", resubmits" : "",
        plan.cancels_after >= 0 ? ", cancels" : "");
  }
  for (const Fault& fault : scenario.faults) {
    absl::StrAppend(&text, "\n  ", absl::FormatDuration(fault.at), " ", fault.kind->name, " for ",
                    absl::FormatDuration(fault.lasts));
  }
  return text;
}

}  // namespace tokenrouter::simulation
