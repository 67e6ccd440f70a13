#include "libs/batching_model/delay_balance.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

#include "libs/batching_model/affine_fixture.h"

namespace tokenrouter {
namespace {

double Threshold(const StepCost& cost, int ready, double arrivals, double mean_step_ms = 0) {
  return DelayBalanceThreshold({.rows = ready, .ids = ready, .mean_step_ms = mean_step_ms},
                               arrivals, cost);
}

TEST(DelayBalanceTest, MatchesTheClosedFormVectors) {
  const StepCost gpu_small = Affine(6, .02), gpu_large = Affine(24, .1);
  const StepCost cpu_small = Affine(25, 4), cpu_large = Affine(80, 12);
  EXPECT_NEAR(Threshold(gpu_small, 1, 1.0), 2.99, 0.005);
  EXPECT_NEAR(Threshold(gpu_small, 2, 4.0), 3.97, 0.01);
  EXPECT_NEAR(Threshold(gpu_large, 1, 0.4), 6.79, 0.005);
  EXPECT_NEAR(Threshold(gpu_large, 4, 1.6), 6.71, 0.005);
  EXPECT_NEAR(Threshold(cpu_small, 1, 1.0), 10.5, 0.005);
  EXPECT_NEAR(Threshold(cpu_large, 1, 0.1), -3.64, 0.005);
}

// By hand: two rows and two arrivals, T = 30: 2 x 30 / 4 = 15, less what two rows add.
TEST(DelayBalanceTest, AnArrivingRowSavesTheMeanStepOfThePlan) {
  EXPECT_NEAR(Threshold(Affine(24, .1), 2, 2.0, 30), 15 - .2, 1e-9);
  EXPECT_LT(Threshold(Affine(24, .1), 2, 2.0, .3), 0) << "a step saves less than two rows add";
}

TEST(DelayBalanceTest, ArrivingRowsBringTheirIds) {
  const StartableRows ready = {.rows = 1, .ids = 10, .ids_per_arrival = 5, .mean_step_ms = 20};
  // t(1, 10) = 16 and t(3, 20) = 28.
  EXPECT_NEAR(DelayBalanceThreshold(ready, 2, Affine(5, 1, 1)), 2 * 20.0 / 3 - 12, 1e-9);
}

TEST(DelayBalanceTest, WaitsForTheFirstStepThatPaysWithThoseBeforeIt) {
  const StepCost cost = Affine(24, .1);
  const StartableRows ready = {.rows = 1, .mean_step_ms = 24};
  EXPECT_EQ(WorthAwaiting(ready, {}, cost), std::nullopt);
  const AwaitedStep poor = {.wait_ms = 2.5, .rows = .1}, good = {.wait_ms = 5, .rows = .4};
  EXPECT_EQ(WorthAwaiting(ready, {{poor}}, cost), std::nullopt);
  EXPECT_EQ(WorthAwaiting(ready, {{poor, good}}, cost), 1u);
  EXPECT_EQ(WorthAwaiting(ready, {{{.wait_ms = 1, .rows = .4}, good}}, cost), 0u);
  std::vector<AwaitedStep> many(kMostAwaitedSteps, {.wait_ms = 100, .rows = 0});
  many.push_back({.wait_ms = 0, .rows = 1});
  EXPECT_EQ(WorthAwaiting(ready, many, cost), std::nullopt) << "the ninth is not looked at";
}

// Property: what the rule says of one awaited step is what comparing the request-time of both
// choices says, when the arriving rows would otherwise need a mean step from the moment at which
// the common step could have begun to end.
TEST(DelayBalanceTest, AgreesWithTheRequestTimeOfBothChoices) {
  std::mt19937_64 generator(5);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator);
  };
  for (int i = 0; i < 2000; ++i) {
    const StepCost cost = Affine(uniform(1, 40), uniform(0, 5));
    const int k = std::uniform_int_distribution<int>(1, 32)(generator);
    const int a = std::uniform_int_distribution<int>(1, 32)(generator);
    const double wait = uniform(0, 40), mean = uniform(1, 100);
    const double delay = wait + cost(k + a, k + a) - cost(k, k);
    const bool pays = a * (mean - delay) > k * delay;
    const StartableRows ready = {.rows = k, .ids = k, .mean_step_ms = mean};
    const AwaitedStep step = {.wait_ms = wait, .rows = static_cast<double>(a)};
    EXPECT_EQ(WorthAwaiting(ready, {{step}}, cost).has_value(), pays) << k << " " << a;
  }
}

}  // namespace
}  // namespace tokenrouter
