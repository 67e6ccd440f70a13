#include "libs/routing/algorithms/algorithm_registry.h"

#include <limits>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AlgorithmRegistryTest, ListsNamesSorted) {
  EXPECT_THAT(AlgorithmNames(), ElementsAre("always", "entropy", "margin", "max_prob", "never",
                                            "random", "speculative"));
}

TEST(AlgorithmRegistryTest, CreatesWhatItLists) {
  for (const std::string& name : AlgorithmNames()) {
    AlgorithmParameters parameters;
    if (name == "random") parameters["p"] = 0.1;
    if (name == "margin" || name == "max_prob") parameters["threshold"] = 0.1;
    TR_ASSERT_OK_AND_ASSIGN(const auto algorithm, CreateAlgorithm(name, parameters));
    EXPECT_EQ(algorithm->name(), name);
  }
}

TEST(AlgorithmRegistryTest, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT(CreateAlgorithm("magic", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"magic\""), HasSubstr("always, entropy, margin"))));
}

struct Refusal {
  const char* algorithm;
  AlgorithmParameters parameters;
  const char* message;
};

TEST(AlgorithmRegistryTest, RefusalsNameParameterValueAndRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Refusal refusals[] = {
      {"random", {}, "random needs the parameter p; allowed: [0, 1]"},
      {"random", {{"p", 1.5}}, "p is 1.5; allowed: [0, 1]"},
      {"random", {{"p", nan}}, "p is nan; allowed: [0, 1]"},
      {"random", {{"p", 0.1}, {"q", 2}}, "no parameter q (given: 2); allowed: p in [0, 1]"},
      {"entropy", {{"threshold", -0.1}}, "threshold is -0.1; allowed: [0, 100]"},
      {"max_prob", {}, "needs the parameter threshold"},
      {"margin", {{"threshold", 2}}, "threshold is 2; allowed: [0, 1]"},
      {"never", {{"p", 0}}, "never has no parameter p (given: 0); allowed: none"},
      {"always", {{"p", 0}}, "always has no parameter p"},
      {"speculative", {{"window", 0}}, "window is 0; allowed: whole numbers in [1, 32]"},
      {"speculative", {{"window", 33}}, "window is 33"},
      {"speculative", {{"window", 2.5}}, "window is 2.5; allowed: whole numbers"},
  };
  for (const Refusal& refusal : refusals) {
    EXPECT_THAT(CreateAlgorithm(refusal.algorithm, refusal.parameters),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(refusal.message)));
  }
}

TEST(AlgorithmRegistryTest, EntropyAndSpeculativeHaveDefaults) {
  EXPECT_THAT(CreateAlgorithm("entropy", {}), IsOk());
  EXPECT_THAT(CreateAlgorithm("speculative", {}), IsOk());
}

}  // namespace
}  // namespace tokenrouter
