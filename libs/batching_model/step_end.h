// When a running step will end, given how long it has run. Step times are taken as normal with a
// relative spread. Units: any, but the same for all durations. Threads: pure functions.
#pragma once

namespace tokenrouter {

// Mean remaining time of a step predicted to take `predicted`, of which `elapsed` have passed, at
// the relative spread `cv`; max(0, predicted - elapsed) for cv = 0.
double MeanResidual(double predicted, double elapsed, double cv);

// No row waits for a step that has run longer than this: it has failed or was predicted wrongly.
double LongestRun(double predicted, double cv);

}  // namespace tokenrouter
