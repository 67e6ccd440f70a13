// A small and a large WorkerCore on synthetic engines, random requests, and the output of one model
// alone, for tests of exactness. Test-only.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "libs/status/status_matchers.h"
#include "libs/synthetic/synthetic_engine.h"
#include "libs/worker/core/worker_core.h"
#include "libs/worker/testing/toy_scheduler.h"

namespace tokenrouter {

inline constexpr TokenId kEos = 13;

struct Pair {
  struct Options {
    int64_t max_step_tokens = 512;
    int32_t max_rows = 64;
    int64_t total_blocks = 1000;
    int32_t block_size = 4;
    std::string device_key;
    double acceptance_rate = 0.7;
    bool prefix_cache = true;
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
  static SyntheticEngineOptions ModelOf(const Options& options, Role role) {
    return {.model = {.role = role,
                      .acceptance_rate = options.acceptance_rate,
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
            .max_step_tokens = options.max_step_tokens,
            .prefix_cache = options.prefix_cache};
  }
  void ExpectAllBlocksFree() {
    EXPECT_EQ(small.store().free_blocks(), small_engine.info().total_blocks);
    EXPECT_EQ(large.store().free_blocks(), large_engine.info().total_blocks);
    EXPECT_EQ(small.store().size() + large.store().size(), 0u);
  }

  SyntheticEngine small_engine, large_engine;
  WorkerCore small, large;
  ToyScheduler scheduler;
};

struct Case {
  wire::GenerationSpec spec;
  std::vector<TokenId> prompt;
};

// The output of one model alone, token by token, without any of the code under test.
inline std::vector<TokenId> Alone(Role role, const Case& request, double acceptance_rate = 0.7) {
  SyntheticEngine engine(Pair::ModelOf({.acceptance_rate = acceptance_rate}, role));
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

inline Case MakeCase(int index, const std::string& algorithm,
                     std::map<std::string, double> parameters, std::mt19937* random) {
  Case made;
  made.spec.set_request_id(absl::StrCat("r", index));
  made.spec.mutable_routing()->set_algorithm(algorithm);
  for (const auto& [name, value] : parameters) {
    (*made.spec.mutable_routing()->mutable_parameters())[name] = value;
  }
  api::SamplingParameters& sampling = *made.spec.mutable_sampling();
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

inline std::vector<Case> MakeCases(int count, const std::string& algorithm,
                                   const std::map<std::string, double>& parameters, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) cases.push_back(MakeCase(i, algorithm, parameters, &random));
  return cases;
}

inline std::vector<std::vector<TokenId>> RunTogether(Pair* pair, const std::vector<Case>& cases) {
  std::vector<uint64_t> keys;
  for (const Case& request : cases) {
    keys.push_back(pair->scheduler.Submit(request.spec, request.prompt));
  }
  pair->scheduler.RunAll();
  std::vector<std::vector<TokenId>> outputs;
  for (const uint64_t key : keys) {
    const ToyScheduler::Request& request = pair->scheduler.request(key);
    EXPECT_GT(request.finish, 0) << "request " << key << " never ended";
    EXPECT_NE(request.reason, api::FINISH_REASON_ERROR) << request.detail;
    outputs.push_back(request.Generated());
  }
  pair->ExpectAllBlocksFree();
  return outputs;
}

struct Rule {
  const char* name;
  std::map<std::string, double> parameters;
};
inline const Rule kRules[] = {{"never", {}},
                              {"always", {}},
                              {"random", {{"p", 0.3}}},
                              {"entropy", {{"threshold", 0.3}}},
                              {"max_prob", {{"threshold", 0.8}}},
                              {"margin", {{"threshold", 0.6}}},
                              {"speculative", {{"window", 3}}}};

}  // namespace tokenrouter
