// Bin(n, p) as a table. Threads: pure.
#pragma once

#include <vector>

namespace tokenrouter {

// Probabilities of 0..n successes, computed outward from the mode so that nothing underflows; far
// tails are 0. REQUIRES: n >= 0, 0 < p <= 1.
std::vector<double> BinomialMass(int n, double p);

}  // namespace tokenrouter
