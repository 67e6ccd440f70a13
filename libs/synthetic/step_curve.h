// StepCurve says how long a step of an engine takes: from rows and new ids to time, with noise.
//   sum      t = base + per_row * rows + per_id * ids
//   roofline t = max(base, per_row * rows + per_id * ids)
// Text form: `NAME`, or `base=MS,row=MS,id=MS`, each with `,cv=X` for noise; `roofline` as an item
// makes explicit numbers a maximum. Items after a name override its numbers.
// Named sets have a curve per role (docs and the batching study use the same numbers):
//   h200      1.5B and 32B in bf16, one GPU each     8b    0.6B and 8B, one GPU each
//   cpu       the default pair in int8 on two AVX2 cores; vnni: the same with faster integer units
//   roofline  memory-bound until 64 rows (small) or 320 ids (large), then proportional
//   fast      a millisecond, for tests; instant: no time at all
// Units: milliseconds in the fields and the text.
// Threads: const and thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct StepCurve {
  double base_ms = 0.0;
  double row_ms = 0.0;
  double id_ms = 0.0;
  bool roofline = false;
  double noise = 0.0;  // Coefficient of variation of one step, [0, 1].

  absl::Duration Mean(int rows, int64_t new_ids) const;
  // With the noise of step number `step`: a pure function of its arguments. Never less than a
  // fifth of the mean.
  absl::Duration Draw(int rows, int64_t new_ids, uint64_t seed, int64_t step) const;

  // INVALID_ARGUMENT naming the item and what is allowed.
  static absl::StatusOr<StepCurve> Parse(absl::string_view text, Role role);
  // The text form.
  std::string ToString() const;
  friend bool operator==(const StepCurve&, const StepCurve&) = default;
};

}  // namespace tokenrouter
