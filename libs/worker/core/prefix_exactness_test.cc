// Sharing KV between requests must change no token, whoever shares with whom, however short blocks
// are, and whenever requests come, go and come back.
#include <numeric>
#include <random>

#include "libs/worker/testing/exactness_fixture.h"

namespace tokenrouter {
namespace {

// Prompts that start like one another, of few tenants; some are the history of an earlier request.
std::vector<Case> AlikeCases(int count, const Rule& rule, std::mt19937* random) {
  std::vector<Case> cases;
  for (int i = 0; i < count; ++i) {
    Case made = MakeCase(i, rule.name, rule.parameters, random);
    made.spec.set_tenant(std::string((*random)() % 3, 't'));
    if (i > 0 && (*random)() % 4 != 0) {
      const std::vector<TokenId>& like = cases[(*random)() % cases.size()].prompt;
      const size_t common = 1 + (*random)() % like.size();
      std::copy_n(like.begin(), std::min(common, made.prompt.size()), made.prompt.begin());
      if ((*random)() % 4 == 0) made.prompt = like;
    }
    cases.push_back(std::move(made));
  }
  return cases;
}

std::vector<TokenId> RunAlone(const Case& request) {
  Pair pair({.prefix_cache = false});
  return RunTogether(&pair, {request})[0];
}

uint64_t Hits(const Pair& pair) {
  return pair.small.store().cache().counters().hit_ids +
         pair.large.store().cache().counters().hit_ids;
}

TEST(PrefixExactnessTest, SharingChangesNoTokenUnderAnyPressure) {
  uint64_t hits = 0, evictions = 0, preemptions = 0;
  for (uint32_t seed = 0; seed < 140; ++seed) {
    std::mt19937 random(seed);
    const Rule& rule = kRules[seed % std::size(kRules)];
    const auto cases = AlikeCases(14, rule, &random);
    const int64_t blocks[] = {1000, 90, 45};
    Pair pair({.max_step_tokens = 65, .total_blocks = blocks[seed % 3]});
    std::vector<uint64_t> keys;
    for (const Case& request : cases) {
      keys.push_back(pair.scheduler.Submit(request.spec, request.prompt));
      // All at once, one after the other, or in between.
      for (uint32_t i = random() % 30; i > 0; --i) {
        const Role role = random() % 2 == 0 ? Role::kSmall : Role::kLarge;
        if (random() % 20 == 0) pair.scheduler.Reconnect(role);
        pair.scheduler.Step(role);
      }
      if (random() % 3 == 0) pair.scheduler.RunAll();
    }
    pair.scheduler.RunAll();
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(pair.scheduler.request(keys[i]).Generated(), RunAlone(cases[i]))
          << rule.name << " seed " << seed << " request " << i;
    }
    hits += Hits(pair);
    for (const WorkerCore* core : {&pair.small, &pair.large}) {
      evictions += core->store().cache().counters().evictions;
      preemptions += core->counters().preemptions;
      EXPECT_EQ(core->counters().engine_errors, 0u);
    }
  }
  // Otherwise this would prove nothing.
  EXPECT_GT(hits, 20000u);
  EXPECT_GT(evictions, 1000u);
  EXPECT_GT(preemptions, 100u);
}

// Message by message, with other conversations in between: each starts with everything before it.
TEST(PrefixExactnessTest, ConversationsGoOnAsWithoutTheCacheAndBothSidesRunOnlyWhatIsNew) {
  const Rule routed = {"random", {{"p", 0.3}}};
  for (const bool prefix_cache : {false, true}) {
    Pair pair({.prefix_cache = prefix_cache});
    std::mt19937 random(3);
    std::vector<Case> talks;
    for (int i = 0; i < 3; ++i)
      talks.push_back(MakeCase(i, routed.name, routed.parameters, &random));
    for (Case& talk : talks) talk.prompt.resize(60, 7);
    for (int turn = 0; turn < 8; ++turn) {
      for (Case& talk : talks) {
        talk.spec.set_request_id(absl::StrCat(talk.spec.request_id(), ".", turn));
        talk.spec.mutable_stop()->set_max_new_tokens(12);
        const uint64_t large_before = pair.large.counters().catch_up_ids;
        const auto known = static_cast<int64_t>(talk.prompt.size());
        const auto answer = RunTogether(&pair, {talk})[0];
        EXPECT_EQ(answer, RunAlone(talk)) << "turn " << turn;
        const auto read = static_cast<int64_t>(pair.large.counters().catch_up_ids - large_before);
        // What was said since the last answer, and a block that was not full.
        if (prefix_cache && turn > 0) {
          EXPECT_LE(read, 12 + 5 + 12 + 4) << "turn " << turn;
        } else if (read > 0) {
          EXPECT_GE(read, known - 1);
        }
        talk.prompt.insert(talk.prompt.end(), answer.begin(), answer.end());
        for (TokenId id = 0; id < 5; ++id) talk.prompt.push_back((id + turn) % 13);
      }
    }
    EXPECT_EQ(Hits(pair) > 0, prefix_cache);
  }
}

TEST(PrefixExactnessTest, ATenantsPrefixIsNeverTakenForAnothers) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const Rule& rule = kRules[seed % std::size(kRules)];
    auto cases = AlikeCases(10, rule, &random);
    Pair pair({});
    for (size_t i = 0; i < cases.size(); ++i) {
      cases[i].prompt = cases[0].prompt;
      cases[i].spec.set_tenant(absl::StrCat("tenant ", i));
      pair.scheduler.Submit(cases[i].spec, cases[i].prompt);
      if (random() % 2 == 0) pair.scheduler.RunAll();
    }
    pair.scheduler.RunAll();
    EXPECT_EQ(Hits(pair), 0u);
  }
}

}  // namespace
}  // namespace tokenrouter
