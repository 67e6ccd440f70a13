// The policy of two models that share one device: serve the large side once at least m of its rows
// are ready, else the small side. A threshold on the large side's queue is optimal there (batching
// model, sections 1 and 5c). Population: `requests` in a closed loop; r = P(a small row leaves for
// the large side), q = P(a large row goes back). Units: milliseconds in, rows (model passes) per
// second out; CommittedPerRow turns rows into committed tokens. Threads: pure functions.
#pragma once

#include "libs/batching_model/step_times.h"

namespace tokenrouter {

struct SharedDeviceModel {
  StepTimes small;  // At least requests + 1 entries each.
  StepTimes large;
  int requests = 1;
  double r = 0.1;  // In (0, 1).
  double q = 1.0;  // In (0, 1].
};

// Fluid approximation: run J small steps, then one large step, with the J of the best rate. O(J)
// for J <= best + 40.
int FluidThreshold(const SharedDeviceModel& model);

// Exact long-run rows per second under threshold m, 1 <= m <= requests. O(requests^2) for q = 1,
// O(requests^3) below.
double ThresholdRate(const SharedDeviceModel& model, int m);

// Local search on ThresholdRate from the fluid threshold: steps of m/8, halving.
int BestThreshold(const SharedDeviceModel& model);

// A routed small row emits nothing: committed tokens per row of the whole system.
double CommittedPerRow(double r, double q);

}  // namespace tokenrouter
