#include "tools/simulate/simulate_options.h"

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using Kind = BatchingPolicy::Kind;
using ::testing::HasSubstr;

absl::StatusOr<std::optional<SimulateOptions>> Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "simulate");
  return ParseSimulateOptions(static_cast<int>(flags.size()), flags.data());
}

TEST(SimulateOptionsTest, ReadsListsAndMakesTheLoadOfACell) {
  TR_ASSERT_OK_AND_ASSIGN(const auto options,
                          Parse({"--set=8b", "--n=2,8", "--r=0.05,0.2", "--q=0.5", "--devices=1",
                                 "--policy=model,static", "--noise=0.1", "--seconds=20"}));
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->requests, (std::vector<int>{2, 8}));
  EXPECT_EQ(options->r, (std::vector<double>{0.05, 0.2}));
  EXPECT_EQ(options->policies, (std::vector<Kind>{Kind::kModel, Kind::kStatic}));
  const SimulationSetup setup = options->Setup(8, 0.2);
  EXPECT_TRUE(setup.shared_device);
  EXPECT_EQ(setup.duration_ms, 20000);
  EXPECT_EQ(setup.q, 0.5);
  EXPECT_NEAR(setup.large(2, 10), 5 + .02 + .32, 1e-9);
}

TEST(SimulateOptionsTest, AGivenCurveReplacesTheSets) {
  TR_ASSERT_OK_AND_ASSIGN(const auto options, Parse({"--large=base=40,row=1"}));
  EXPECT_EQ(options->set, "custom");
  EXPECT_NEAR(options->Setup(1, .1).large(2, 2), 42, 1e-9);
  EXPECT_NEAR(options->Setup(1, .1).small(1, 1), 3.01, 1e-9);  // Still h200's.
}

TEST(SimulateOptionsTest, ErrorsNameTheFlagTheValueAndTheRange) {
  const struct {
    const char* flag;
    std::vector<const char*> said;
  } rows[] = {
      {"--n=4,0", {"--n", "0", "1 to 4096"}},
      {"--n=many", {"--n", "many"}},
      {"--r=1", {"--r", "1", "0.001"}},
      {"--q=2", {"--q", "2", "0.001"}},
      {"--devices=3", {"--devices", "3", "1 to 2"}},
      {"--policy=eager", {"--policy", "eager", "fixed_wait"}},
      {"--set=h100", {"--set", "h100", "h200"}},
      {"--set=instant", {"--set=instant", "0.001 ms"}},
      {"--small=base=3,cv=.1", {"--small", "--noise"}},
      {"--noise=-1", {"--noise", "-1"}},
  };
  for (const auto& row : rows) {
    const auto options = Parse({row.flag});
    ASSERT_THAT(options, StatusIs(absl::StatusCode::kInvalidArgument)) << row.flag;
    for (const char* const part : row.said) {
      EXPECT_THAT(std::string(options.status().message()), HasSubstr(part));
    }
  }
}

}  // namespace
}  // namespace tokenrouter
