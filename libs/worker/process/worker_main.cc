#include "libs/worker/process/worker_main.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "libs/concurrency/shutdown_signal.h"
#include "libs/rpc/grpc_log.h"
#include "libs/telemetry/log.h"
#include "libs/worker/engines/synthetic_engine_setup.h"
#include "libs/worker/process/worker_runner.h"

namespace tokenrouter {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int Refuse(const std::string& program, const absl::Status& status) {
  std::cerr << program << ": " << std::string(status.message()) << "\n";
  return kExitUsage;
}

}  // namespace

int WorkerMain(Role role, int argc, const char* const* argv,
               const EngineFactory& make_torch_engine) {
  BlockShutdownSignals();
  const std::string program = absl::StrCat(RoleName(role), "_worker");
  Settings settings(program, absl::StrCat("Runs the ", RoleName(role), " model of a pair."));
  WorkerOptions options;
  AddWorkerSettings(role, &settings, &options);
  const absl::StatusOr<bool> parsed = settings.Parse(argc, argv);
  if (!parsed.ok()) return Refuse(program, parsed.status());
  if (!*parsed) return 0;
  if (const absl::Status valid = Validate(options); !valid.ok()) return Refuse(program, valid);
  if (const absl::Status log = InitLog(program, options.log_level); !log.ok()) {
    return Refuse(program, log);
  }
  SendGrpcLogHere();
  const EngineFactory make_engine = [&](const WorkerOptions& o, const LoadProgress& progress) {
    return o.engine == "torch" ? make_torch_engine(o, progress) : MakeSyntheticEngine(role, o);
  };
  std::atomic<bool> failed{false};
  auto runner = WorkerRunner::Start(role, options, make_engine, [&failed](const absl::Status&) {
    failed = true;
    kill(getpid(), SIGTERM);  // Wakes the main thread, which waits for it.
  });
  if (!runner.ok()) {
    LogError("start_failed", {{"status", runner.status()}});
    return kExitFailed;
  }
  const int signal = WaitForShutdownSignal();
  if (failed) return kExitFailed;
  LogInfo("stopping", {{"signal", signal}});
  (*runner)->Drain();
  LogInfo("stopped");
  return 0;
}

}  // namespace tokenrouter
