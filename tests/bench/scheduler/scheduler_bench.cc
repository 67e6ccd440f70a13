// The scheduler's cost per token, with scripted workers and one gateway: in process (the core
// alone) and over real gRPC on loopback (the server in a separate process). One JSON row each.
//   scheduler_bench [--seconds=S] [--workers=N] [--rows=R]
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <thread>

#include "libs/concurrency/mutex.h"
#include "libs/config/settings.h"
#include "libs/rpc/channel_factory.h"
#include "libs/rpc/client_stream.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "proto/packages.h"
#include "services/scheduler/core/initial_grant.h"
#include "services/scheduler/core/scheduler_core.h"
#include "services/scheduler/server/scheduler_server.h"
#include "tests/bench/measure/bench_parts.h"
#include "tests/bench/scheduler/scripted_peers.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter::bench {
namespace {

constexpr int kPromptTokens = 64;
constexpr int kNewTokens = 256;

struct Setup {
  int32_t seconds = 3;
  int32_t workers = 4;  // Small ones; a large one beside them.
  int32_t rows = 16;    // Of a frame; also requests per small worker.
  int hand_off_every = 0;
  // Time of a worker's step over gRPC; 0: none, credits alone pace the workers, and frames pile up
  // into fewer, larger ones.
  int step_ms = 0;
};

struct Row {
  const char* transport;
  uint64_t tokens = 0;
  uint64_t frames_in = 0;
  double wall_s = 0;
  double cpu_s = 0;
};

void Print(const Setup& setup, const Row& row) {
  const double per_token_us = row.cpu_s * 1e6 / static_cast<double>(row.tokens);
  std::printf(
      "{\"bench\":\"scheduler\",\"transport\":\"%s\",\"small_workers\":%d,\"rows_per_frame\":%d,"
      "\"depart_every\":%d,\"step_ms\":%d,\"tokens\":%llu,\"frames_in\":%llu,\"tokens_per_s\":%.0f,"
      "\"cpu_us_per_token\":%.2f,\"tokens_per_core_s\":%.0f}\n",
      row.transport, setup.workers, setup.rows, setup.hand_off_every, setup.step_ms,
      static_cast<unsigned long long>(row.tokens), static_cast<unsigned long long>(row.frames_in),
      static_cast<double>(row.tokens) / row.wall_s, per_token_us, 1e6 / per_token_us);
  std::fflush(stdout);
}

double CpuSeconds(clockid_t clock) {
  timespec time;
  TR_CHECK(clock_gettime(clock, &time) == 0);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// ---- the core alone ----

class InProcess : public Output {
 public:
  explicit InProcess(const Setup& setup)
      : setup_(setup),
        gateway_(setup.workers * setup.rows, kPromptTokens, kNewTokens, "never"),
        core_({}, 1, {.opening = InitialGrant, .on_end = {}, .output = this}) {
    for (int i = 0; i < setup.workers; ++i) {
      workers_.emplace_back(Role::kSmall, i, setup.rows, setup.hand_off_every);
    }
    workers_.emplace_back(Role::kLarge, 0, setup.rows, 0);
  }

  Row Run() {
    for (size_t i = 0; i < workers_.size(); ++i) ToCore(i, workers_[i].Hello());
    ToCore(gateway_.Hello());
    const auto begin = std::chrono::steady_clock::now();
    const auto end = begin + std::chrono::seconds(setup_.seconds);
    while (std::chrono::steady_clock::now() < end) {
      for (size_t i = 0; i < workers_.size(); ++i) {
        if (const auto frame = workers_[i].Step()) ToCore(i, *frame);
      }
      if (const auto frame = gateway_.Take(/*acknowledge=*/true)) ToCore(*frame);
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    return {"in_process", gateway_.tokens(), core_.counters().frames_in, wall.count(), cpu_};
  }

  void ToGateway(StreamId, wire::SchedulerFrame* frame) override { gateway_.Apply(*frame); }
  void ToWorker(StreamId stream, wire::CommandFrame* frame) override {
    workers_[stream - 1].Apply(*frame);
  }
  void CloseGateway(StreamId, const absl::Status& why) override { TR_CHECK(false) << why; }
  void CloseWorker(StreamId, const absl::Status& why) override { TR_CHECK(false) << why; }

 private:
  void ToCore(size_t worker, const wire::WorkerFrame& frame) {
    Measured([&] { core_.OnWorkerFrame(worker + 1, frame, absl::Now()); });
  }
  void ToCore(const wire::GatewayFrame& frame) {
    Measured([&] { core_.OnGatewayFrame(1, frame, absl::Now()); });
  }
  // The scripted peers read inside Flush; their cost there is counted too.
  template <typename Action>
  void Measured(const Action& action) {
    const double before = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
    action();
    core_.Flush(absl::Now());
    cpu_ += CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - before;
  }

  const Setup setup_;
  std::vector<ScriptedWorker> workers_;
  ScriptedGateway gateway_;
  SchedulerCore core_;
  double cpu_ = 0;
};

// ---- over gRPC ----

using WorkerStream = ClientStream<wire::WorkerFrame, wire::CommandFrame>;
using GatewayStream = ClientStream<wire::GatewayFrame, wire::SchedulerFrame>;

// Steps at once whenever it may, or only on request.
class RemoteWorker {
 public:
  RemoteWorker(wire::Scheduler::Stub* stub, ScriptedWorker worker, bool eager)
      : worker_(std::move(worker)) {
    writer_ = WorkerStream::Start(
        [stub](auto* context, auto* reactor) { stub->async()->Attach(context, reactor); },
        {[this, eager](const wire::CommandFrame& frame, const ReadCredit&) {
           {
             MutexLock lock(&mutex_);
             worker_.Apply(frame);
           }
           while (eager && Step()) {
           }
         },
         [this](const absl::Status&) { closed_ = true; }});
    MutexLock lock(&mutex_);
    TR_CHECK(writer_->Write(worker_.Hello()));
  }
  ~RemoteWorker() {
    writer_->Finish(absl::OkStatus());
    while (!closed_) std::this_thread::yield();
  }
  bool Step() {
    MutexLock lock(&mutex_);
    auto step = worker_.Step();
    return step && writer_->Write(*std::move(step));
  }

 private:
  Mutex mutex_;
  ScriptedWorker worker_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<WorkerStream::Writer> writer_;
  std::atomic<bool> closed_{false};
};

// Acknowledges every 2 ms, as the real gateway does.
class RemoteGateway {
 public:
  RemoteGateway(wire::Scheduler::Stub* stub, ScriptedGateway gateway)
      : gateway_(std::move(gateway)) {
    writer_ = GatewayStream::Start(
        [stub](auto* context, auto* reactor) { stub->async()->Connect(context, reactor); },
        {[this](const wire::SchedulerFrame& frame, const ReadCredit&) {
           MutexLock lock(&mutex_);
           gateway_.Apply(frame);
         },
         [this](const absl::Status&) { closed_ = true; }});
    TR_CHECK(writer_->Write(gateway_.Hello()));
  }
  ~RemoteGateway() {
    writer_->Finish(absl::OkStatus());
    while (!closed_) std::this_thread::yield();
  }
  void Speak() {
    std::optional<wire::GatewayFrame> frame;
    {
      MutexLock lock(&mutex_);
      frame = gateway_.Take(/*acknowledge=*/true);
    }
    if (frame) TR_CHECK(writer_->Write(*std::move(frame)));
  }
  uint64_t tokens() {
    MutexLock lock(&mutex_);
    return gateway_.tokens();
  }

 private:
  Mutex mutex_;
  ScriptedGateway gateway_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<GatewayStream::Writer> writer_;
  std::atomic<bool> closed_{false};
};

// A forked server; the parent must not have used gRPC yet.
class ServerProcess {
 public:
  ServerProcess() {
    int pipe_ends[2];
    TR_CHECK(pipe(pipe_ends) == 0);
    pid_ = fork();
    TR_CHECK(pid_ >= 0);
    if (pid_ == 0) Serve(pipe_ends[1]);
    close(pipe_ends[1]);
    TR_CHECK(read(pipe_ends[0], &port_, sizeof(port_)) == sizeof(port_));
    close(pipe_ends[0]);
    TR_CHECK(clock_getcpuclockid(pid_, &clock_) == 0);
  }
  ~ServerProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }
  double cpu_seconds() const { return CpuSeconds(clock_); }

 private:
  [[noreturn]] static void Serve(int pipe_end) {
    SchedulerOptions options;
    options.listen = options.admin = "127.0.0.1:0";
    // The service mode is forced, since the scheduler would soon choose large-only service for one
    // scripted large worker.
    options.core.forced_mode = ServiceMode::kRouted;
    const auto server = SchedulerServer::Start(options);
    TR_CHECK(server.ok()) << server.status();
    const int port = (*server)->port();
    TR_CHECK(write(pipe_end, &port, sizeof(port)) == sizeof(port));
    while (true) pause();
  }

  pid_t pid_ = 0;
  int port_ = 0;
  clockid_t clock_;
};

// Acknowledges every 2 ms and, with a step time, lets each worker step once in it.
void Play(const Setup& setup, std::vector<std::unique_ptr<RemoteWorker>>* workers,
          RemoteGateway* gateway, std::chrono::milliseconds time) {
  const auto begin = std::chrono::steady_clock::now();
  int64_t steps = 0;
  while (true) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    gateway->Speak();
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    if (elapsed >= time) return;
    if (setup.step_ms == 0) continue;
    for (; (steps + 1) * setup.step_ms <= elapsed.count(); ++steps) {
      for (const auto& worker : *workers) worker->Step();
    }
  }
}

// `server` was forked before this process touched gRPC.
Row RunOverGrpc(const Setup& setup, const ServerProcess& server) {
  const auto stub = wire::Scheduler::NewStub(MakeChannel(server.target()));
  std::vector<std::unique_ptr<wire::Scheduler::Stub>> stubs;
  std::vector<std::unique_ptr<RemoteWorker>> workers;
  for (int i = 0; i <= setup.workers; ++i) {
    const bool large = i == setup.workers;
    stubs.push_back(wire::Scheduler::NewStub(MakeChannel(server.target())));
    workers.push_back(
        std::make_unique<RemoteWorker>(stubs.back().get(),
                                       ScriptedWorker(large ? Role::kLarge : Role::kSmall, i,
                                                      setup.rows, large ? 0 : setup.hand_off_every),
                                       setup.step_ms == 0));
  }
  RemoteGateway gateway(
      stub.get(), ScriptedGateway(setup.workers * setup.rows, kPromptTokens, kNewTokens, "never"));
  Play(setup, &workers, &gateway, std::chrono::milliseconds(500));  // Warm.
  const auto begin = std::chrono::steady_clock::now();
  const double cpu = server.cpu_seconds();
  const uint64_t tokens = gateway.tokens();
  Play(setup, &workers, &gateway, std::chrono::seconds(setup.seconds));
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {"grpc_loopback", gateway.tokens() - tokens, 0, wall.count(), server.cpu_seconds() - cpu};
}

absl::Status Run(int argc, char** argv) {
  Setup setup;
  Settings settings("scheduler_bench", "Measures the scheduler's cost per token");
  settings.Add("seconds", &setup.seconds, 1, 600, "measured, of each row");
  settings.Add("workers", &setup.workers, 1, 1024, "small ones; a large one beside them");
  settings.Add("rows", &setup.rows, 1, 256, "of a frame; also requests per small worker");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  const ServerProcess servers[3];
  int next = 0;
  for (const int hand_off_every : {0, 10}) {
    setup.hand_off_every = hand_off_every;
    Print(setup, InProcess(setup).Run());
    Print(setup, RunOverGrpc(setup, servers[next++]));
  }
  setup.step_ms = 5;
  Print(setup, RunOverGrpc(setup, servers[next]));
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter::bench

int main(int argc, char** argv) {
  return tokenrouter::BenchMain(tokenrouter::bench::Run, argc, argv);
}
