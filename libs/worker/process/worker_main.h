// The main function of both worker binaries: settings, log, runner, signals, drain.
#pragma once

#include "libs/tokens/token_types.h"
#include "libs/worker/engines/engine_factory.h"

namespace tokenrouter {

// `make_torch_engine` serves --engine=torch. Returns the exit code: 0 after a signal and a drain, 1
// when the worker could not serve, 2 for wrong settings.
int WorkerMain(Role role, int argc, const char* const* argv,
               const EngineFactory& make_torch_engine);

}  // namespace tokenrouter
