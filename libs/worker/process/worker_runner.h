// WorkerRunner is a whole worker in one object: admin port, engine thread, stream, drain.
// Ownership: owns all parts and the engine thread; the destructor stops and joins. Threads: Start,
// Drain and the destructor from one thread.
// Errors: Start: those of the admin port. The engine is made on the engine thread, so that /livez
// answers meanwhile; when that fails, `on_failed` is called there, once, with the status.
#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/concurrency/mutex.h"
#include "libs/telemetry/admin_server.h"
#include "libs/worker/engines/engine_factory.h"
#include "libs/worker/engines/worker_options.h"
#include "libs/worker/process/step_loop.h"

namespace tokenrouter {

class WorkerRunner {
 public:
  // Command frames that may wait for the engine thread.
  static constexpr size_t kInboxLimit = 4096;

  // REQUIRES: Validate(options) is OK.
  static absl::StatusOr<std::unique_ptr<WorkerRunner>> Start(
      Role role, const WorkerOptions& options, EngineFactory make_engine,
      std::function<void(const absl::Status&)> on_failed);
  ~WorkerRunner();

  // Lets open requests end, up to drain_ms, then leaves the scheduler and stops. Blocks.
  void Drain();
  int admin_port() const { return admin_->port(); }
  // OK: attached and serving.
  absl::Status ready() const { return phase_.Get(); }

 private:
  WorkerRunner(Role role, const WorkerOptions& options);
  void Run(const EngineFactory& make_engine,
           const std::function<void(const absl::Status&)>& on_failed);
  absl::StatusOr<WorkerEngine> Load(const EngineFactory& make_engine);
  std::vector<wire::StepSample> Measure(Engine* engine);
  void Serve(WorkerEngine engine);
  void Join();

  const Role role_;
  const WorkerOptions options_;
  prometheus::Registry registry_;
  WorkerMetrics metrics_;
  WorkerPhase phase_;
  WorkerGauges gauges_;
  AttachInbox inbox_;
  std::unique_ptr<AdminServer> admin_;

  Mutex mutex_;
  StepLoop* loop_ ABSL_GUARDED_BY(mutex_) = nullptr;  // While the engine thread serves.
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread engine_thread_;
};

}  // namespace tokenrouter
