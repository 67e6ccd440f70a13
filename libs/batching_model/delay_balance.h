// The delay-balance rule for two devices: an idle side X with k ready rows waits for the other
// side's running step iff the request-time saved by sharing one step exceeds the request-time lost
// by waiting (batching model, section 5a). A is the expected number of arrivals from the other
// side's step, rem the time until its end. Waiting pays iff rem < tau*. Units: milliseconds.
// Threads: pure functions.
#pragma once

#include "libs/batching_model/step_times.h"

namespace tokenrouter {

// Durations of own steps that the rule compares.
struct BalanceTimes {
  double ready = 0;     // t(k): the ready rows alone.
  double arrivals = 0;  // t(n): the expected arrivals alone.
  double together = 0;  // t(k+n): both in one step.
};
// tau* = [beta A (t(k) + t(n) - t(k+n)) - k (t(k+n) - t(k))] / (beta A + k) with n = max(1,
// round(A)); <= 0: never wait. REQUIRES: ready >= 1.
double DelayBalanceThreshold(const BalanceTimes& times, int ready, double arrivals, double beta);
// The same from a table by batch size.
double DelayBalanceThreshold(StepTimes own, int ready, double arrivals, double beta);

// Mean remaining time of a step predicted to take `predicted`, of which `elapsed` have passed, when
// step times are normal with relative spread `cv`; max(0, predicted - elapsed) for cv = 0.
double MeanResidual(double predicted, double elapsed, double cv);

}  // namespace tokenrouter
