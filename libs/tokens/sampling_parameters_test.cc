#include "libs/tokens/sampling_parameters.h"

#include <cmath>
#include <functional>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

TEST(SamplingParametersTest, DefaultsAreValid) {
  EXPECT_THAT(Validate(SamplingParameters{}), IsOk());
}

TEST(SamplingParametersTest, NamesTheFieldThatIsOutOfRange) {
  const std::vector<std::pair<const char*, std::function<void(SamplingParameters&)>>> cases = {
      {"temperature", [](auto& p) { p.temperature = -0.1f; }},
      {"temperature", [](auto& p) { p.temperature = NAN; }},
      {"top_k", [](auto& p) { p.top_k = -1; }},
      {"top_p", [](auto& p) { p.top_p = 0.0f; }},
      {"top_p", [](auto& p) { p.top_p = 1.1f; }},
      {"min_p", [](auto& p) { p.min_p = 2.0f; }},
      {"frequency_penalty", [](auto& p) { p.frequency_penalty = 2.5f; }},
      {"presence_penalty", [](auto& p) { p.presence_penalty = -2.5f; }},
      {"repetition_penalty", [](auto& p) { p.repetition_penalty = 0.0f; }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{3, 101.0f}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{-3, 1.0f}};
       }},
      {"logit_bias", [](auto& p) { p.logit_bias.resize(kMaxLogitBias + 1); }},
  };
  for (const auto& [field, spoil] : cases) {
    SamplingParameters parameters;
    spoil(parameters);
    EXPECT_THAT(Validate(parameters),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)));
  }
}

}  // namespace
}  // namespace tokenrouter
