// Tests each rule as a table from evidence to decision.
#include <cmath>
#include <limits>

#include "libs/routing/algorithms/algorithm_registry.h"
#include "libs/status/status_matchers.h"
#include "libs/tokens/keyed_random.h"

namespace tokenrouter {
namespace {

std::unique_ptr<const Algorithm> Make(const char* name, const AlgorithmParameters& parameters) {
  auto algorithm = CreateAlgorithm(name, parameters);
  EXPECT_THAT(algorithm, IsOk());
  return *std::move(algorithm);
}

Decision RouteAt(const Algorithm& algorithm, const StepSignals& signals, Role role = Role::kSmall,
                 std::span<const TokenId> tail = {}, Position position = 10, uint64_t seed = 1) {
  RequestState state;
  return algorithm.Route({.role = role,
                          .position = position,
                          .generated = 5,
                          .proposal = 42,
                          .signals = signals,
                          .tail = tail,
                          .seed = seed,
                          .choice = 0},
                         &state);
}

void ExpectStay(const Decision& decision) {
  EXPECT_FALSE(decision.go);
  EXPECT_EQ(decision.proposal, Decision::Proposal::kCommit);
}

void ExpectAsksLargeForOneToken(const Decision& decision) {
  EXPECT_TRUE(decision.go);
  EXPECT_EQ(decision.proposal, Decision::Proposal::kDrop);
  EXPECT_EQ(decision.to, Role::kLarge);
  EXPECT_EQ(decision.window.kind, Window::Kind::kTokens);
  EXPECT_EQ(decision.window.tokens, 1);
}

void ExpectHandsBack(const Decision& decision) {
  EXPECT_TRUE(decision.go);
  EXPECT_EQ(decision.proposal, Decision::Proposal::kCommit);
  EXPECT_EQ(decision.to, Role::kSmall);
  EXPECT_EQ(decision.window.kind, Window::Kind::kOwnRule);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(NeverTest, StaysSmall) {
  const auto never = Make("never", {});
  EXPECT_EQ(never->Open().role, Role::kSmall);
  ExpectStay(RouteAt(*never, {.entropy = 50}));
}

TEST(AlwaysTest, OpensAtTheLargeModelUntilTheEnd) {
  const auto always = Make("always", {});
  EXPECT_EQ(always->Open().role, Role::kLarge);
  EXPECT_EQ(always->Open().window.kind, Window::Kind::kUntilEnd);
  ExpectStay(RouteAt(*always, {}, Role::kLarge));
}

TEST(EntropyTest, RoutesFromTheThresholdOn) {
  const auto entropy = Make("entropy", {{"threshold", 0.5}});
  ExpectStay(RouteAt(*entropy, {.entropy = 0.49f}));
  ExpectAsksLargeForOneToken(RouteAt(*entropy, {.entropy = 0.5f}));
  ExpectAsksLargeForOneToken(RouteAt(*entropy, {.entropy = 3}));
  ExpectAsksLargeForOneToken(RouteAt(*entropy, {.entropy = kNan}));
  ExpectHandsBack(RouteAt(*entropy, {.entropy = 3}, Role::kLarge));
}

TEST(EntropyTest, ZeroRoutesEveryToken) {
  ExpectAsksLargeForOneToken(RouteAt(*Make("entropy", {{"threshold", 0}}), {.entropy = 0}));
}

TEST(MaxProbTest, RoutesUpToTheThreshold) {
  const auto max_prob = Make("max_prob", {{"threshold", 0.5}});
  ExpectStay(RouteAt(*max_prob, {.max_probability = 0.51f}));
  ExpectAsksLargeForOneToken(RouteAt(*max_prob, {.max_probability = 0.5f}));
  ExpectAsksLargeForOneToken(RouteAt(*max_prob, {.max_probability = kNan}));
  EXPECT_TRUE(max_prob->Signals(Role::kSmall).max_probability);
  EXPECT_FALSE(max_prob->Signals(Role::kLarge).max_probability);
}

TEST(MarginTest, RoutesUpToTheThreshold) {
  const auto margin = Make("margin", {{"threshold", 0.25}});
  ExpectStay(RouteAt(*margin, {.margin = 0.26f}));
  ExpectAsksLargeForOneToken(RouteAt(*margin, {.margin = 0.25f}));
  ExpectAsksLargeForOneToken(RouteAt(*margin, {.margin = kNan}));
  EXPECT_TRUE(margin->Signals(Role::kSmall).margin);
}

TEST(RandomTest, DrawsByRequestAndPositionOnly) {
  const auto random = Make("random", {{"p", 0.1}});
  int routed = 0;
  const int n = 20000;
  for (Position position = 0; position < n; ++position) {
    const Decision decision = RouteAt(*random, {}, Role::kSmall, {}, position, 7);
    const double u = KeyedUniform({.seed = 7, .position = position, .purpose = Purpose::kRouter});
    EXPECT_EQ(decision.go, u < 0.1);
    routed += decision.go;
  }
  const double sd = std::sqrt(n * 0.1 * 0.9);
  EXPECT_NEAR(routed, n * 0.1, 4 * sd);
}

TEST(RandomTest, TheEndsOfTheRangeAreExact) {
  for (Position position = 0; position < 1000; ++position) {
    ExpectStay(RouteAt(*Make("random", {{"p", 0}}), {}, Role::kSmall, {}, position));
    ExpectAsksLargeForOneToken(
        RouteAt(*Make("random", {{"p", 1}}), {}, Role::kSmall, {}, position));
  }
}

TEST(RandomTest, AsksForAsManyTokensAsItsWindow) {
  const Decision decision = RouteAt(*Make("random", {{"p", 1}, {"window", 4}}), {});
  EXPECT_EQ(decision.window.kind, Window::Kind::kTokens);
  EXPECT_EQ(decision.window.tokens, 4);
  EXPECT_FALSE(CreateAlgorithm("random", {{"p", 1}, {"window", 0}}).ok());
}

TEST(SpeculativeTest, DraftsTheWindowThenGoesWithTheWholeTail) {
  const auto speculative = Make("speculative", {{"window", 3}});
  const TokenId tail[] = {1, 2};
  for (const size_t drafted : {0, 1}) {
    const Decision stay = RouteAt(*speculative, {}, Role::kSmall, {tail, drafted});
    EXPECT_FALSE(stay.go);
    EXPECT_EQ(stay.proposal, Decision::Proposal::kTentative);
  }
  const Decision go = RouteAt(*speculative, {}, Role::kSmall, tail);
  EXPECT_TRUE(go.go);
  EXPECT_EQ(go.to, Role::kLarge);
  EXPECT_EQ(go.proposal, Decision::Proposal::kTentative);
  const TokenId whole[] = {1, 2, 3};
  EXPECT_EQ(speculative->Send(whole, {}).verify, 3);
  ExpectHandsBack(RouteAt(*speculative, {}, Role::kLarge));
}

TEST(SpeculativeTest, AWindowOfOneGoesAtOnce) {
  EXPECT_TRUE(RouteAt(*Make("speculative", {{"window", 1}}), {}).go);
}

TEST(SpeculativeTest, KeepsTheLongestEqualPrefix) {
  const auto speculative = Make("speculative", {});
  const TokenId tail[] = {1, 2, 3};
  const struct {
    TokenId choices[4];
    int32_t keep;
  } table[] = {{{1, 2, 3, 4}, 3}, {{1, 2, 9, 4}, 2}, {{9, 2, 3, 4}, 0}, {{1, 9, 3, 4}, 1}};
  for (const auto& row : table) {
    std::vector<Choice> choices;
    for (const TokenId id : row.choices) choices.push_back({.id = id});
    RequestState state;
    EXPECT_EQ(speculative->Receive({Role::kLarge, tail, choices}, &state), row.keep);
  }
}

}  // namespace
}  // namespace tokenrouter
