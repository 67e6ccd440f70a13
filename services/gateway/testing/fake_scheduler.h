// A scheduler process as a gateway sees it, for tests: real gRPC on port 0, tokens from a script.
// Each request gets "abc...z" over and over, one byte per token, until max_new_tokens, never more
// than kCredit beyond its acknowledgement. Ownership: owns its server. Threads: all methods are
// thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/concurrency/mutex.h"
#include "libs/rpc/server_runtime.h"
#include "libs/rpc/server_stream.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {

class FakeScheduler final : public wire::Scheduler::CallbackService {
 public:
  static constexpr int32_t kCredit = 64;
  struct Request {
    wire::Submit submit;
    int32_t committed = 0;
    int32_t acknowledged = 0;
    int32_t furthest_ahead = 0;  // Largest committed - acknowledged.
    bool finished = false;
    bool cancelled = false;
    std::optional<wire::Finish> gateway_finish;
  };

  // REQUIRES: called once. `port` 0 picks one. A later term is that of a restarted scheduler.
  void Start(int port = 0, uint64_t term = 1000);
  // Ends every stream.
  void Stop();
  int port() const { return port_; }

  // Every request gets at most this many tokens until Release.
  void Hold(int tokens = 0);
  void Release();
  // Requests from now on are refused.
  void Reject(wire::Rejection rejection);
  void SetPair(int small_workers, int context_limit);

  // Waits until the predicate holds for what was submitted so far; false after ten seconds.
  bool WaitFor(const std::function<bool(const std::map<uint64_t, Request>&)>& predicate);
  // The text a request gets in all, for comparison.
  static std::string Text(int tokens);

 private:
  using Stream = ServerStream<wire::GatewayFrame, wire::SchedulerFrame>;

  grpc::ServerBidiReactor<wire::GatewayFrame, wire::SchedulerFrame>* Connect(
      grpc::CallbackServerContext* context) override;
  void OnFrame(const std::shared_ptr<Stream::Writer>& writer, const wire::GatewayFrame& frame);
  void Apply(const wire::GatewayFrame& frame, wire::SchedulerFrame* reply)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Advance(wire::SchedulerFrame* reply) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(wire::SchedulerFrame frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  int port_ = 0;
  std::unique_ptr<ServerRuntime> server_;
  Mutex mutex_;
  CondVar changed_;
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<int> hold_ ABSL_GUARDED_BY(mutex_);  // Tokens; nothing: not held.
  std::optional<wire::Rejection> rejection_ ABSL_GUARDED_BY(mutex_);
  wire::PairStatus pair_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Stream::Writer> writer_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Request> requests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokenrouter
