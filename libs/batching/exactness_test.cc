// Two WorkerCores and a toy scheduler must give what the algorithms promise, whatever the batching,
// the chunking, the order of commands and the state of the KV.
#include <numeric>
#include <random>

#include "libs/batching/toy_scheduler.h"
#include "libs/batching/worker_core.h"
#include "libs/inference/hash_engine.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

constexpr TokenId kEos = 13;

struct Pair {
  struct Options {
    int64_t max_step_tokens = 512;
    int32_t max_rows = 64;
    int64_t total_blocks = 1000;
    int32_t block_size = 4;
    std::string device_key;
    double agreement = 0.7;
  };
  explicit Pair(const Options& options)
      : small_engine(ModelOf(options, Role::kSmall)),
        large_engine(ModelOf(options, Role::kLarge)),
        small(Core(options, Role::kSmall), &small_engine),
        large(Core(options, Role::kLarge), &large_engine),
        scheduler(&small, &large) {
    scheduler.stop_ids = {kEos};
    scheduler.Attach();
  }
  static HashEngineOptions ModelOf(const Options& options, Role role) {
    return {.model = {.role = role,
                      .agreement = options.agreement,
                      .usable_ids = 50,
                      .eos_ids = {kEos},
                      .eos_probability = 0.02},
            .context_limit = 256,
            .block_size = options.block_size,
            .total_blocks = options.total_blocks};
  }
  static WorkerCoreOptions Core(const Options& options, Role role) {
    return {.role = role,
            .device_key = options.device_key,
            .max_rows = options.max_rows,
            .max_step_tokens = options.max_step_tokens};
  }
  void ExpectAllBlocksFree() {
    EXPECT_EQ(small_engine.free_blocks(), small_engine.info().total_blocks);
    EXPECT_EQ(large_engine.free_blocks(), large_engine.info().total_blocks);
    EXPECT_EQ(small.sequences() + large.sequences(), 0u);
  }

  HashEngine small_engine, large_engine;
  WorkerCore small, large;
  ToyScheduler scheduler;
};

struct Case {
  v1::GenerationSpec spec;
  std::vector<TokenId> prompt;
};

// What one model alone writes, token by token, without any of the code under test.
std::vector<TokenId> Alone(Role role, const Case& request, double agreement = 0.7) {
  HashEngine engine(Pair::ModelOf({.agreement = agreement}, role));
  SamplingContext sampling;
  sampling.parameters = *FromWire(request.spec.sampling(), request.spec.choice());
  sampling.stop_ids = {kEos};
  const auto prompt = static_cast<Position>(request.prompt.size());
  sampling.mask_stop_ids_before = prompt + std::max(0, request.spec.stop().min_new_tokens() - 1);
  std::vector<TokenId> ids = request.prompt;
  while (static_cast<Position>(ids.size()) < prompt + request.spec.stop().max_new_tokens() &&
         static_cast<Position>(ids.size()) < engine.info().context_limit) {
    const Position known = engine.Length(SequenceId{1});
    StepResult result;
    const absl::Status status = engine.Step({{{.sequence = SequenceId{1},
                                               .first = known,
                                               .new_ids = std::span(ids).subspan(known),
                                               .choices = 1,
                                               .sampling = &sampling,
                                               .signals = {}}}},
                                            &result);
    TR_CHECK(status.ok()) << status;
    const TokenId next = result.choices[0][0].id;
    ids.push_back(next);
    ++sampling.generated_counts[next];
    if (next == kEos) break;
  }
  return {ids.begin() + prompt, ids.end()};
}

Case MakeCase(int index, const std::string& algorithm, std::map<std::string, double> parameters,
              std::mt19937* random) {
  Case made;
  made.spec.set_request_id(absl::StrCat("r", index));
  made.spec.mutable_routing()->set_algorithm(algorithm);
  for (const auto& [name, value] : parameters) {
    (*made.spec.mutable_routing()->mutable_parameters())[name] = value;
  }
  v1::SamplingParameters& sampling = *made.spec.mutable_sampling();
  sampling.set_temperature(index % 2 == 0 ? 0 : 1);
  sampling.set_seed((*random)());
  if (index % 3 == 0) sampling.set_presence_penalty(0.5);
  made.spec.mutable_stop()->set_max_new_tokens(1 + (*random)() % 40);
  if (index % 4 == 0) {
    made.spec.mutable_stop()->set_min_new_tokens(std::min(10, made.spec.stop().max_new_tokens()));
  }
  const size_t length = 1 + (*random)() % 120;
  for (size_t i = 0; i < length; ++i) made.prompt.push_back((*random)() % 50);
  return made;
}

std::vector<Case> MakeCases(int count, const std::string& algorithm,
                            const std::map<std::string, double>& parameters, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) cases.push_back(MakeCase(i, algorithm, parameters, &random));
  return cases;
}

std::vector<std::vector<TokenId>> RunTogether(Pair* pair, const std::vector<Case>& cases) {
  std::vector<uint64_t> keys;
  for (const Case& request : cases) {
    keys.push_back(pair->scheduler.Submit(request.spec, request.prompt));
  }
  pair->scheduler.RunAll();
  std::vector<std::vector<TokenId>> outputs;
  for (const uint64_t key : keys) {
    const ToyScheduler::Request& request = pair->scheduler.request(key);
    EXPECT_GT(request.finish, 0) << "request " << key << " never ended";
    EXPECT_NE(request.reason, v1::FINISH_REASON_ERROR) << request.detail;
    outputs.push_back(request.Generated());
  }
  pair->ExpectAllBlocksFree();
  return outputs;
}

TEST(ExactnessTest, NeverIsTheSmallModelAlone) {
  Pair pair({});
  const auto cases = MakeCases(40, "never", {}, 1);
  const auto outputs = RunTogether(&pair, cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(outputs[i], Alone(Role::kSmall, cases[i]));
  }
}

// Rules under which every token is the large model's.
TEST(ExactnessTest, AlwaysEntropyZeroAndRandomOneAreTheLargeModelAlone) {
  const std::pair<const char*, std::map<std::string, double>> rules[] = {
      {"always", {}}, {"entropy", {{"threshold", 0}}}, {"random", {{"p", 1}}}};
  for (const auto& [name, parameters] : rules) {
    Pair pair({});
    const auto cases = MakeCases(40, name, parameters, 2);
    const auto outputs = RunTogether(&pair, cases);
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(outputs[i], Alone(Role::kLarge, cases[i])) << name;
    }
  }
}

TEST(ExactnessTest, SpeculativeIsTheLargeModelAloneForEveryWindowAndSampledToo) {
  for (const double window : {1, 2, 4, 7, 32}) {
    const double agreement = window > 8 ? 0.95 : 0.7;
    Pair pair({.agreement = agreement});
    const auto cases = MakeCases(40, "speculative", {{"window", window}}, 3);
    const auto outputs = RunTogether(&pair, cases);
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(outputs[i], Alone(Role::kLarge, cases[i], agreement)) << "window " << window;
    }
  }
}

TEST(ExactnessTest, SpeculativeKeepsDraftsWhereTheModelsAgree) {
  Pair pair({.agreement = 1});
  const auto cases = MakeCases(10, "speculative", {{"window", 4}}, 4);
  RunTogether(&pair, cases);
  int small = 0, all = 0;
  for (const auto& [key, request] : pair.scheduler.requests()) {
    small += std::count(request.authors.begin(), request.authors.end(), '\x01');
    all += request.authors.size();
  }
  EXPECT_GT(small, all * 7 / 10);
}

struct Rule {
  const char* name;
  std::map<std::string, double> parameters;
};
const Rule kRules[] = {{"never", {}},
                       {"always", {}},
                       {"random", {{"p", 0.3}}},
                       {"entropy", {{"threshold", 0.3}}},
                       {"max_prob", {{"threshold", 0.8}}},
                       {"margin", {{"threshold", 0.6}}},
                       {"speculative", {{"window", 3}}}};

// Otherwise the tests below would prove nothing.
TEST(ExactnessTest, EveryRuleThatMayRouteDoes) {
  for (const Rule& rule : kRules) {
    Pair pair({});
    RunTogether(&pair, MakeCases(20, rule.name, rule.parameters, 9));
    const bool routes = std::string(rule.name) != "never" && std::string(rule.name) != "always";
    int64_t departures = 0, stops = 0;
    for (const auto& [key, request] : pair.scheduler.requests()) {
      departures += request.departures;
      stops += request.reason == v1::FINISH_REASON_STOP;
    }
    EXPECT_EQ(departures > 20, routes) << rule.name << " " << departures;
    EXPECT_GT(stops, 0) << rule.name;
  }
}

TEST(ExactnessTest, NoBatchingOrChunkingChangesAnyToken) {
  for (const Rule& rule : kRules) {
    const auto cases = MakeCases(12, rule.name, rule.parameters, 5);
    std::vector<std::vector<TokenId>> alone;
    for (const Case& request : cases) {
      Pair pair({});
      alone.push_back(RunTogether(&pair, {request})[0]);
    }
    const Pair::Options settings[] = {{.max_step_tokens = 65, .max_rows = 1},
                                      {.max_step_tokens = 65, .max_rows = 3},
                                      {.max_step_tokens = 70, .block_size = 1},
                                      {.max_step_tokens = 512, .block_size = 16}};
    for (const Pair::Options& options : settings) {
      Pair pair(options);
      EXPECT_EQ(RunTogether(&pair, cases), alone) << rule.name;
    }
  }
}

// Few blocks: sequences lose their KV all the time and read their ids again.
TEST(ExactnessTest, LosingKvChangesNoToken) {
  for (const Rule& rule : kRules) {
    const auto cases = MakeCases(16, rule.name, rule.parameters, 6);
    Pair roomy({});
    const auto expected = RunTogether(&roomy, cases);
    Pair tight({.max_step_tokens = 65, .total_blocks = 45});
    EXPECT_EQ(RunTogether(&tight, cases), expected) << rule.name;
    EXPECT_GT(tight.small.counters().preemptions + tight.large.counters().preemptions, 0u)
        << rule.name;
  }
}

TEST(ExactnessTest, SmallCreditsChangeNoToken) {
  for (const Rule& rule : kRules) {
    const auto cases = MakeCases(12, rule.name, rule.parameters, 7);
    Pair free({});
    const auto expected = RunTogether(&free, cases);
    Pair stingy({});
    stingy.scheduler.credit_window = 1;
    EXPECT_EQ(RunTogether(&stingy, cases), expected) << rule.name;
  }
}

// The small side waits for fuller batches by ever other rules, and sometimes for rows that never
// come.
TEST(ExactnessTest, DeferralChangesNoToken) {
  uint64_t deferred = 0;
  for (uint32_t seed = 0; seed < 35; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](int limit) { return static_cast<int>(random() % limit); };
    const Rule& rule = kRules[seed % std::size(kRules)];
    const auto cases = MakeCases(10, rule.name, rule.parameters, seed);
    Pair eager({});
    const auto expected = RunTogether(&eager, cases);
    Pair pair({.max_step_tokens = 65, .max_rows = 8});
    std::vector<uint64_t> keys;
    for (const Case& request : cases) {
      keys.push_back(pair.scheduler.Submit(request.spec, request.prompt));
    }
    v1::Deferral deferral;
    for (int i = 0; i < 200; ++i) {
      if (i % 10 == 0) {
        deferral.set_least_rows(below(2) * below(8));
        deferral.set_wait_us(below(2) * below(5000));
        deferral.set_beta(below(2) * 0.1 * below(20));
        deferral.set_step_spread(0.01 * below(30));
        deferral.set_cap_us(below(10000));
      }
      v1::PeerStep peer;
      peer.set_batch(below(4));
      peer.set_expected_returns(below(4));
      peer.set_predicted_us(below(8000));
      pair.scheduler.Defer(Role::kSmall, deferral, peer);
      pair.scheduler.Step(below(2) == 0 ? Role::kSmall : Role::kLarge);
    }
    pair.scheduler.RunAll();
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(pair.scheduler.request(keys[i]).Generated(), expected[i])
          << rule.name << " seed " << seed;
    }
    pair.ExpectAllBlocksFree();
    const DeferralCounts& counts = pair.small.counters().deferrals;
    deferred += std::accumulate(counts.begin() + 1, counts.end(), uint64_t{0});
  }
  EXPECT_GT(deferred, 50u);
}

TEST(ExactnessTest, TheContextLimitEndsARequestAsLength) {
  for (const Rule& rule : kRules) {
    Pair pair({});
    auto cases = MakeCases(1, rule.name, rule.parameters, 8);
    cases[0].prompt.assign(250, 3);
    cases[0].spec.mutable_stop()->set_max_new_tokens(1000);
    cases[0].spec.mutable_stop()->set_ignore_eos(true);
    const auto outputs = RunTogether(&pair, cases);
    EXPECT_EQ(outputs[0].size(), 6u) << rule.name;
    EXPECT_EQ(pair.scheduler.request(1).reason, v1::FINISH_REASON_LENGTH);
  }
}

// A turn of so many tokens starts over when it is given again, so windows here are of one token or
// open-ended. Streams break between and during steps.
TEST(ExactnessTest, BrokenStreamsChangeNoToken) {
  for (uint32_t seed = 0; seed < 70; ++seed) {
    std::mt19937 random(seed);
    const Rule& rule = kRules[seed % std::size(kRules)];
    const auto cases = MakeCases(6, rule.name, rule.parameters, seed);
    Pair calm({});
    const auto expected = RunTogether(&calm, cases);
    Pair pair({.max_step_tokens = 65});
    std::vector<uint64_t> keys;
    for (const Case& request : cases) {
      keys.push_back(pair.scheduler.Submit(request.spec, request.prompt));
    }
    for (int i = 0; i < 60; ++i) {
      const Role role = random() % 2 == 0 ? Role::kSmall : Role::kLarge;
      if (random() % 4 != 0) {
        pair.scheduler.Step(role);
      } else if (random() % 2 == 0) {
        pair.scheduler.Reconnect(role);
      } else {
        pair.scheduler.Step(role, [&] { pair.scheduler.Reconnect(role); });
      }
    }
    pair.scheduler.RunAll();
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(pair.scheduler.request(keys[i]).Generated(), expected[i])
          << rule.name << " seed " << seed;
    }
    // What nobody opened again is freed after its time.
    for (int i = 0; i < 10; ++i) {
      pair.scheduler.Step(Role::kSmall);
      pair.scheduler.Step(Role::kLarge);
    }
    pair.ExpectAllBlocksFree();
  }
}

TEST(ExactnessTest, CancelAtAnyMomentLeavesNoBlockInUse) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Rule& rule = kRules[seed % std::size(kRules)];
    Pair pair({.max_step_tokens = 65, .total_blocks = seed % 2 == 0 ? 1000 : 45});
    std::vector<uint64_t> keys;
    for (const Case& request : MakeCases(6, rule.name, rule.parameters, seed)) {
      keys.push_back(pair.scheduler.Submit(request.spec, request.prompt));
    }
    for (const uint64_t key : keys) {
      const int steps = static_cast<int>(random() % 10);
      for (int i = 0; i < steps; ++i) {
        pair.scheduler.Step(random() % 2 == 0 ? Role::kSmall : Role::kLarge);
      }
      // Before, between or during steps.
      pair.scheduler.Step(random() % 2 == 0 ? Role::kSmall : Role::kLarge,
                          [&] { pair.scheduler.Close(key); });
      pair.scheduler.Close(key);
    }
    pair.ExpectAllBlocksFree();
  }
}

}  // namespace
}  // namespace tokenrouter
