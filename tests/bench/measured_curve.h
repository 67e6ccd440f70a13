// Step times of an engine, measured, as a cost over (rows, new ids), and what the best possible
// batching makes of two of them. Threads: MeasureCurve calls the engine from its caller's thread;
// the rest is pure.
#pragma once

#include <map>

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"
#include "libs/inference/engine.h"

namespace tokenrouter {

// t(rows, ids) = one_row(ids) + (one_id(rows) - one_row(rows)): the cost of reading ids, plus what
// more choices cost. Piecewise linear between measured points, extended by the last slope.
// Milliseconds.
struct MeasuredCurve {
  std::map<int64_t, double> one_row;  // One row of so many new ids.
  std::map<int64_t, double> one_id;   // So many rows of one new id.
  double Milliseconds(int rows, int64_t ids) const;
};

// Medians over `repeats` steps on sequences of `context` tokens, greedy, one choice per row. Leaves
// the engine empty.
absl::StatusOr<MeasuredCurve> MeasureCurve(Engine* engine, int context, int repeats);

// Committed tokens per second of the best threshold on one shared device at no overhead, for
// routing share `r` in (0, 1).
double BestSharedRate(const MeasuredCurve& small, const MeasuredCurve& large, int requests,
                      double r);

}  // namespace tokenrouter
