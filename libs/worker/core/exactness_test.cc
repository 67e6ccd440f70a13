// Two WorkerCores and a toy scheduler must give what the algorithms promise, whatever the batching,
// the chunking, the order of commands and the state of the KV.
#include <numeric>
#include <random>

#include "libs/worker/testing/exactness_fixture.h"

namespace tokenrouter {
namespace {

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
    const double acceptance_rate = window > 8 ? 0.95 : 0.7;
    Pair pair({.acceptance_rate = acceptance_rate});
    const auto cases = MakeCases(40, "speculative", {{"window", window}}, 3);
    const auto outputs = RunTogether(&pair, cases);
    for (size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(outputs[i], Alone(Role::kLarge, cases[i], acceptance_rate)) << "window " << window;
    }
  }
}

TEST(ExactnessTest, SpeculativeKeepsDraftsWhereTheModelsAgree) {
  Pair pair({.acceptance_rate = 1});
  const auto cases = MakeCases(10, "speculative", {{"window", 4}}, 4);
  RunTogether(&pair, cases);
  int small = 0, all = 0;
  for (const auto& [key, request] : pair.scheduler.requests()) {
    small += std::count(request.authors.begin(), request.authors.end(), '\x01');
    all += request.authors.size();
  }
  EXPECT_GT(small, all * 7 / 10);
}

// Otherwise the tests below would prove nothing.
TEST(ExactnessTest, EveryRuleThatMayRouteDoes) {
  for (const Rule& rule : kRules) {
    Pair pair({});
    RunTogether(&pair, MakeCases(20, rule.name, rule.parameters, 9));
    const bool routes = std::string(rule.name) != "never" && std::string(rule.name) != "always";
    int64_t handoffs = 0, stops = 0;
    for (const auto& [key, request] : pair.scheduler.requests()) {
      handoffs += request.handoffs;
      stops += request.reason == api::FINISH_REASON_STOP;
    }
    EXPECT_EQ(handoffs > 20, routes) << rule.name << " " << handoffs;
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
    wire::Deferral deferral;
    for (int i = 0; i < 200; ++i) {
      if (i % 10 == 0) {
        deferral.set_least_rows(below(2) * below(8));
        deferral.set_wait_us(below(2) * below(5000));
        deferral.set_delay_balance(below(2) == 0);
        deferral.set_mean_step_us(below(2) * below(20000));
        deferral.set_step_spread(0.01 * below(30));
        deferral.set_cap_us(below(10000));
      }
      wire::PeerStep peer;
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
    const WaitCounts& counts = pair.small.counters().deferrals;
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
    EXPECT_EQ(pair.scheduler.request(1).reason, api::FINISH_REASON_LENGTH);
  }
}

// A window of so many tokens starts over when it is granted again, so windows here are of one token
// or open-ended. Streams break between and during steps.
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
    // What was not opened again is freed after its time.
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
