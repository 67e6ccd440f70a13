#include "libs/telemetry/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

TEST(MetricsTest, ExposesWhatWasAdded) {
  prometheus::Registry registry;
  AddCounter(&registry, "tokens_total", "Tokens", {{"author", "small"}}).Increment(3);
  AddCounter(&registry, "tokens_total", "Tokens", {{"author", "large"}}).Increment();
  AddGauge(&registry, "running", "Requests running").Set(2);
  AddHistogram(&registry, "step_seconds", "Step", LatencyBuckets()).Observe(0.004);
  const std::string text = ExposeText(registry);
  EXPECT_THAT(text, HasSubstr("tokens_total{author=\"small\"} 3"));
  EXPECT_THAT(text, HasSubstr("tokens_total{author=\"large\"} 1"));
  EXPECT_THAT(text, HasSubstr("running 2"));
  EXPECT_THAT(text, HasSubstr("step_seconds_bucket{le=\"0.005\"} 1"));
}

}  // namespace
}  // namespace tokenrouter
