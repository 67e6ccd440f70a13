#include "libs/batching_model/mode_controller.h"

#include <string>
#include <utility>
#include <vector>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

StepCost Affine(double fixed, double row, double id = 0) {
  return [=](int rows, int64_t ids) { return fixed + row * rows + id * static_cast<double>(ids); };
}

// The table "what routing is worth" of the batching model at r = .1 and 3 % noise: multiples of
// large-only service at the same number of requests, by requests, with the best policy.
struct Worth {
  const char* name;
  StepCost small, large;
  bool shared;
  std::vector<std::pair<int, double>> multiples;
};

std::vector<Worth> WorthTable() {
  const StepCost h200_small = Affine(3, .01), h200_large = Affine(15, .02, .128);
  const StepCost b8_small = Affine(2.5, .004), b8_large = Affine(5, .01, .032);
  return {
      {"h200_two",
       h200_small,
       h200_large,
       false,
       {{1, 3.25}, {4, 2.82 * 1.01}, {16, 2.61 * 1.012}, {64, 2.09 * 1.001}, {256, 1.46 * 1.002}}},
      {"h200_shared",
       h200_small,
       h200_large,
       true,
       {{1, 3.25}, {4, 2.30}, {16, 1.95}, {64, 1.55}, {256, 1.24}}},
      {"8b_two",
       b8_small,
       b8_large,
       false,
       {{1, 1.66}, {4, 1.57 * 1.029}, {16, 1.59 * 1.019}, {64, 1.79 * 1.009}, {256, 1.64 * 1.002}}},
      {"8b_shared",
       b8_small,
       b8_large,
       true,
       {{1, 1.66}, {4, 1.30}, {16, 1.19}, {64, 1.16}, {256, 1.15}}},
      {"cpu_shared",
       Affine(22, 7.2),
       Affine(45, 1, 19),
       true,
       {{1, 1.23}, {4, .90}, {16, .80}, {64, .79}}},
      {"vnni_shared",
       Affine(20, 2.5),
       Affine(45, .5, 6),
       true,
       {{1, 1.56}, {4, 1.08}, {16, .87}, {64, .80}}},
  };
}

class WhatRoutingIsWorthTest : public ::testing::TestWithParam<Worth> {};

TEST_P(WhatRoutingIsWorthTest, IsPredictedWithinThreePercent) {
  const Worth& row = GetParam();
  for (const auto& [requests, multiple] : row.multiples) {
    SCOPED_TRACE(requests);
    const SimulationSetup setup{.small = row.small,
                                .large = row.large,
                                .shared_device = row.shared,
                                .requests = requests,
                                .r = .1,
                                .noise_cv = .03};
    TR_ASSERT_OK_AND_ASSIGN(const ModePrediction prediction, PredictModes(setup));
    EXPECT_NEAR(prediction.routed_per_s / prediction.large_alone_per_s / multiple, 1, 0.03);
    EXPECT_EQ(prediction.Better(), multiple >= 1 ? ServiceMode::kRouted : ServiceMode::kLargeAlone);
    EXPECT_NEAR(prediction.large_alone_ms_per_token, row.large(requests, requests), 1e-9);
    EXPECT_NEAR(prediction.large_alone_ms_per_token / prediction.routed_ms_per_token, multiple,
                0.03 * multiple);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, WhatRoutingIsWorthTest, ::testing::ValuesIn(WorthTable()),
                         [](const auto& info) { return std::string(info.param.name); });

ModePrediction Rates(double routed, double alone) {
  return {.routed_per_s = routed, .large_alone_per_s = alone};
}

TEST(ModeControllerTest, TheFirstPredictionDecidesAtOnce) {
  EXPECT_EQ(NextMode({}, Rates(100, 101), absl::UnixEpoch()).mode, ServiceMode::kLargeAlone);
  EXPECT_EQ(NextMode({}, Rates(101, 100), absl::UnixEpoch()).mode, ServiceMode::kRouted);
}

TEST(ModeControllerTest, WhereWholeRequestsTieTheFasterNextTokenDecides) {
  const auto better = [](double routed, double alone, double routed_ms, double alone_ms) {
    ModePrediction prediction = Rates(routed, alone);
    prediction.routed_ms_per_token = routed_ms;
    prediction.large_alone_ms_per_token = alone_ms;
    const bool is_routed = prediction.Better() == ServiceMode::kRouted;
    EXPECT_GE(prediction.Gain(), 1);
    return is_routed ? "routed" : "alone";
  };
  // As measured with 4, 8 and 2 clients of random(0.1).
  EXPECT_EQ(better(81, 80, 46.5, 39.2), "alone");
  EXPECT_EQ(better(93, 106, 76.9, 53.7), "alone");
  EXPECT_EQ(better(58, 40, 34.5, 45.5), "routed");
  EXPECT_EQ(better(100, 105, 40, 44), "routed");
  EXPECT_EQ(better(105, 100, 44, 40), "alone");
  EXPECT_EQ(better(110, 100, 400, 40), "routed") << "no tie";
  EXPECT_EQ(better(103, 100, 40.4, 40), "routed") << "no request waits much longer";
  EXPECT_EQ(better(103, 100, 0, 40), "routed") << "not known";
}

TEST(ModeControllerTest, TakesOverFromASlowerNextTokenWithinFivePercentOfWholeRequests) {
  const auto mode_after = [](ServiceMode mode, double routed, double alone) {
    ModePrediction prediction = Rates(routed, alone);
    prediction.routed_ms_per_token = 50;
    prediction.large_alone_ms_per_token = 40;
    ModeState state = {.mode = mode, .decided = true};
    for (int second = 0; second < 5; ++second) {
      state = NextMode(state, prediction, absl::UnixEpoch() + absl::Seconds(second));
    }
    return state.mode;
  };
  EXPECT_EQ(mode_after(ServiceMode::kRouted, 100, 95.5), ServiceMode::kLargeAlone);
  EXPECT_EQ(mode_after(ServiceMode::kRouted, 100, 95), ServiceMode::kRouted);
  EXPECT_EQ(mode_after(ServiceMode::kLargeAlone, 100, 95), ServiceMode::kLargeAlone);
  EXPECT_EQ(mode_after(ServiceMode::kLargeAlone, 100, 89), ServiceMode::kRouted);
}

TEST(ModeControllerTest, AModeThatMakesNothingIsLeft) {
  EXPECT_EQ(Rates(0, 50).Better(), ServiceMode::kLargeAlone);
  EXPECT_EQ(Rates(50, 0).Better(), ServiceMode::kRouted);
  EXPECT_EQ(Rates(0, 0).Gain(), 1);
}

TEST(ModeControllerTest, SwitchesOnlyForAGainThatLasts) {
  const struct {
    double seconds, routed, alone;
    ServiceMode expected;
  } steps[] = {
      {0, 120, 100, ServiceMode::kRouted},       // Decided.
      {1, 100, 102, ServiceMode::kRouted},       // Better by too little.
      {9, 100, 102, ServiceMode::kRouted},       // Even for a long time.
      {10, 100, 110, ServiceMode::kRouted},      // Enough, not yet for long.
      {11.9, 100, 110, ServiceMode::kRouted},    //
      {12, 100, 102, ServiceMode::kRouted},      // The gain broke off,
      {13, 100, 110, ServiceMode::kRouted},      // so the hold starts again.
      {14.9, 100, 110, ServiceMode::kRouted},    //
      {15, 100, 110, ServiceMode::kLargeAlone},  // Held for two seconds.
      {15.1, 120, 100, ServiceMode::kLargeAlone}, {17.1, 120, 100, ServiceMode::kRouted},
  };
  ModeState state;
  for (const auto& step : steps) {
    const absl::Time now = absl::UnixEpoch() + absl::Seconds(step.seconds);
    state = NextMode(state, Rates(step.routed, step.alone), now);
    EXPECT_EQ(state.mode, step.expected) << step.seconds;
  }
}

}  // namespace
}  // namespace tokenrouter
