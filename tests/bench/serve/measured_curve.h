// Measured step times of an engine, as a cost over (rows, new ids), and the rate of the best
// possible batching on two of them. Threads: CurveMeter calls the engine from its caller's thread;
// the rest is pure.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/batching_model/simulator.h"
#include "libs/inference/engine.h"

namespace tokenrouter {

// t(rows, ids) = one_row(ids) + (one_id(rows) - one_row(rows)): the cost of computing ids, plus
// that of more choices. Piecewise linear between measured points, extended by the last slope.
// Milliseconds.
struct MeasuredCurve {
  std::map<int64_t, double> one_row;  // One row, by its number of new ids.
  std::map<int64_t, double> one_id;   // Rows of one new id each, by their number.
  double Milliseconds(int rows, int64_t ids) const;
  // Adds `share` of each time of `other`: shares that sum to one make a mean.
  void Add(const MeasuredCurve& other, double share);
};

// Measures an engine again and again on the same sequences, which it fills once and releases at the
// end. Ownership: the engine must outlive it, and have no other sequences.
class CurveMeter {
 public:
  // Sequences of `context` tokens each.
  static absl::StatusOr<std::unique_ptr<CurveMeter>> Fill(Engine* engine, int context);
  ~CurveMeter();

  // Medians over `repeats` steps, greedy, one choice per row.
  absl::StatusOr<MeasuredCurve> Measure(int repeats);

 private:
  CurveMeter(Engine* engine, int context);
  StepRow Row(int row, int first, int64_t count, int choices) const;
  absl::StatusOr<double> Median(int rows, int64_t ids_per_row, int repeats);

  Engine* const engine_;
  const int context_;
  SamplingContext sampling_;
  std::vector<TokenId> ids_;
  StepResult result_;
};

// Committed tokens per second of the best threshold on one shared device at no overhead, for
// routing share `r` in (0, 1).
double BestSharedRate(const MeasuredCurve& small, const MeasuredCurve& large, int requests,
                      double r);

}  // namespace tokenrouter
