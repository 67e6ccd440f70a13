#include "libs/routing/algorithms/algorithm_registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libs/routing/algorithms/always.h"
#include "libs/routing/algorithms/entropy.h"
#include "libs/routing/algorithms/margin.h"
#include "libs/routing/algorithms/max_prob.h"
#include "libs/routing/algorithms/never.h"
#include "libs/routing/algorithms/random.h"
#include "libs/routing/algorithms/speculative.h"

namespace tokenrouter {
namespace {

struct Entry {
  const char* name;
  absl::StatusOr<std::unique_ptr<const Algorithm>> (*create)(const AlgorithmParameters&);
};

// Sorted by name.
constexpr Entry kEntries[] = {
    {AlwaysAlgorithm::kName, AlwaysAlgorithm::Create},
    {EntropyAlgorithm::kName, EntropyAlgorithm::Create},
    {MarginAlgorithm::kName, MarginAlgorithm::Create},
    {MaxProbAlgorithm::kName, MaxProbAlgorithm::Create},
    {NeverAlgorithm::kName, NeverAlgorithm::Create},
    {RandomAlgorithm::kName, RandomAlgorithm::Create},
    {SpeculativeAlgorithm::kName, SpeculativeAlgorithm::Create},
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Algorithm>> CreateAlgorithm(
    std::string_view name, const AlgorithmParameters& parameters) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.create(parameters);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown routing algorithm \"", std::string(name),
                   "\"; known: ", absl::StrJoin(AlgorithmNames(), ", ")));
}

std::vector<std::string> AlgorithmNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) names.push_back(entry.name);
  return names;
}

}  // namespace tokenrouter
