// Makes client channels with the project's keepalive and size limits.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace tokenrouter {

// `target` is a gRPC name such as host:port or dns:///host:port. The channel connects on first use;
// each call makes a connection of its own, never a shared one. Thread-safe.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target);

}  // namespace tokenrouter
