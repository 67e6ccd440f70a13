#include "libs/rpc/server_runtime.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.pb.h"

namespace tokenrouter {
namespace {

constexpr const char* kReadyName = "ready";

// Both plugins are process-wide switches of gRPC.
void EnablePluginsOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    // Links the descriptor of the health service in, so that reflection finds it.
    grpc::health::v1::HealthCheckRequest::descriptor();
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerRuntime>> ServerRuntime::Start(const Options& options) {
  EnablePluginsOnce();
  std::unique_ptr<ServerRuntime> runtime(new ServerRuntime());
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(), &runtime->port_);
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                             0);  // A taken port is an error, not a silent share.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTime)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTimeout)));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             static_cast<int>(absl::ToInt64Milliseconds(kMinPingInterval)));
  runtime->server_ = builder.BuildAndStart();
  if (runtime->server_ == nullptr || runtime->port_ == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.address,
                                               ": the address is taken or not of this machine"));
  }
  runtime->SetReady(false);
  return runtime;
}

ServerRuntime::~ServerRuntime() { Drain(absl::ZeroDuration()); }

void ServerRuntime::SetReady(bool ready) {
  server_->GetHealthCheckService()->SetServingStatus(kReadyName, ready);
}

void ServerRuntime::Drain(absl::Duration grace) {
  if (server_ == nullptr) return;
  SetReady(false);
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(grace));
  server_->Wait();
}

}  // namespace tokenrouter
