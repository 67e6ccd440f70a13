// The gateway process: settings, start, wait for SIGTERM or SIGINT, drain.
#include <iostream>

#include "libs/concurrency/shutdown_signal.h"
#include "libs/telemetry/log.h"
#include "libs/timing/real_clock.h"
#include "services/gateway/gateway_options.h"
#include "services/gateway/gateway_server.h"

namespace tokenrouter {
namespace {

int Fail(const absl::Status& status, int code) {
  std::cerr << "gateway: " << status.message() << "\n";
  return code;
}

int Main(int argc, char** argv) {
  BlockShutdownSignals();
  const auto options = ParseGatewayOptions(argc, argv);
  if (!options.ok()) return Fail(options.status(), 2);
  if (!options->has_value()) return 0;
  if (absl::Status log = InitLog("gateway", (*options)->log_level); !log.ok()) return Fail(log, 2);
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
