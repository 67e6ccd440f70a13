#include "services/scheduler/large_release.h"

#include <numeric>

namespace tokenrouter {

std::vector<size_t> GreedyRelease::Decide(const ReleaseSnapshot& snapshot) const {
  std::vector<size_t> all(snapshot.waiting.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

}  // namespace tokenrouter
