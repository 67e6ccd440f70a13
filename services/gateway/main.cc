// The gateway process: settings, start, wait for SIGTERM or SIGINT, drain.
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "libs/concurrency/shutdown_signal.h"
#include "libs/rpc/grpc_log.h"
#include "libs/telemetry/log.h"
#include "libs/timing/real_clock.h"
#include "services/gateway/server/gateway_options.h"
#include "services/gateway/server/gateway_server.h"

namespace tokenrouter {
namespace {

int Fail(const absl::Status& status, int code) {
  std::cerr << "gateway: " << status.message() << "\n";
  return code;
}

// Every connection is a file, and the soft limit of many systems is below max_connections.
void RaiseFileLimit() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
    LogWarning("file_limit_not_raised", {{"error", std::string(strerror(errno))}});
  }
}

int Main(int argc, char** argv) {
  BlockShutdownSignals();
  const auto options = ParseGatewayOptions(argc, argv);
  if (!options.ok()) return Fail(options.status(), 2);
  if (!options->has_value()) return 0;
  if (absl::Status log = InitLog("gateway", (*options)->log_level); !log.ok()) return Fail(log, 2);
  SendGrpcLogHere();
  RaiseFileLimit();
  const auto server = GatewayServer::Start(**options, &RealClock::Get());
  if (!server.ok()) return Fail(server.status(), 1);

  const int signal = WaitForShutdownSignal();
  LogInfo("draining", {{"signal", signal}});
  (*server)->Drain();
  return 0;
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::Main(argc, argv); }
