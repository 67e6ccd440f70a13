// scheduler: assigns requests to the small and large workers of a pair.
#include <cstdio>
#include <string>

#include "libs/concurrency/shutdown_signal.h"
#include "libs/rpc/grpc_log.h"
#include "libs/telemetry/log.h"
#include "services/scheduler/server/scheduler_options.h"
#include "services/scheduler/server/scheduler_server.h"

namespace tokenrouter {
namespace {

constexpr int kUsageError = 2;

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "scheduler: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(int argc, char** argv) {
  BlockShutdownSignals();
  const auto options = ParseSchedulerOptions(argc, argv);
  if (!options.ok()) return Fail(options.status(), kUsageError);
  if (!options->has_value()) return 0;
  if (const absl::Status log = InitLog("scheduler", (*options)->log_level); !log.ok()) {
    return Fail(log, kUsageError);
  }
  SendGrpcLogHere();
  const auto server = SchedulerServer::Start(**options);
  if (!server.ok()) return Fail(server.status(), 1);
  const int signal = WaitForShutdownSignal();
  LogInfo("draining", {{"signal", signal}});
  (*server)->Drain();
  return 0;
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::Main(argc, argv); }
