#include "libs/worker/process/worker_runner.h"

#include <unistd.h>

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/telemetry/log.h"
#include "libs/timing/real_clock.h"
#include "libs/worker/engines/engine_calibration.h"

namespace tokenrouter {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
// A line of progress for each such part of the whole.
constexpr int kProgressParts = 20;

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

// Unique per process start, readable in logs.
std::string MakeWorkerId(Role role) {
  std::random_device random;
  return absl::StrCat(RoleName(role), "-", HostName(), "-", getpid(), "-", absl::Hex(random()));
}

WorkerCoreOptions CoreOptions(Role role, const WorkerOptions& options, const WorkerEngine& engine) {
  WorkerCoreOptions core;
  core.role = role;
  core.worker_id = MakeWorkerId(role);
  core.pair = options.pair;
  core.tokenizer_fingerprint = engine.tokenizer_fingerprint;
  core.eos_ids = engine.eos_ids;
  core.device_key = options.device_key;
  core.max_sequences = options.max_sequences;
  core.max_rows = options.max_rows;
  core.max_step_tokens = options.max_step_tokens;
  core.max_step = absl::Milliseconds(options.max_step_ms);
  core.prefix_cache = options.prefix_cache;
  return core;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerRunner>> WorkerRunner::Start(
    Role role, const WorkerOptions& options, EngineFactory make_engine,
    std::function<void(const absl::Status&)> on_failed) {
  std::unique_ptr<WorkerRunner> runner(new WorkerRunner(role, options));
  TR_ASSIGN_OR_RETURN(
      runner->admin_,
      AdminServer::Start(
          {.address = options.admin,
           .registry = &runner->registry_,
           .alive = [gauges = &runner->gauges_] { return gauges->Alive(RealClock::Get().Now()); },
           .ready = [phase = &runner->phase_] { return phase->Get(); }}));
  LogInfo("listening", {{"name", "admin"}, {"port", runner->admin_->port()}});
  runner->engine_thread_ =
      std::thread([runner = runner.get(), make_engine = std::move(make_engine),
                   on_failed = std::move(on_failed)] { runner->Run(make_engine, on_failed); });
  return runner;
}

WorkerRunner::WorkerRunner(Role role, const WorkerOptions& options)
    : role_(role), options_(options), metrics_(&registry_, role), inbox_(kInboxLimit) {}

WorkerRunner::~WorkerRunner() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    if (loop_ != nullptr) loop_->Stop();
  }
  Join();
}

void WorkerRunner::Drain() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    if (loop_ != nullptr) loop_->BeginDrain(absl::Milliseconds(options_.drain_ms));
  }
  Join();
}

void WorkerRunner::Join() {
  if (engine_thread_.joinable()) engine_thread_.join();
}

void WorkerRunner::Run(const EngineFactory& make_engine,
                       const std::function<void(const absl::Status&)>& on_failed) {
  absl::StatusOr<WorkerEngine> engine = Load(make_engine);
  if (engine.ok()) return Serve(*std::move(engine));
  LogError("engine_failed", {{"status", engine.status()}});
  phase_.SetNotReady(absl::StrCat("engine failed: ", engine.status().ToString()));
  on_failed(engine.status());
}

absl::StatusOr<WorkerEngine> WorkerRunner::Load(const EngineFactory& make_engine) {
  phase_.SetNotReady("loading the model");
  LogInfo("loading", {{"engine", options_.engine}, {"model", options_.model}});
  int64_t next = 0;
  const absl::Time start = RealClock::Get().Now();
  auto engine = make_engine(options_, [&](int64_t done, int64_t total) {
    phase_.SetNotReady(
        absl::StrCat("loading the model: ", done / kMegabyte, " of ", total / kMegabyte, " MB"));
    if (done < next && done < total) return;
    next = done + total / kProgressParts;
    LogInfo("loading", {{"done_mb", done / kMegabyte}, {"total_mb", total / kMegabyte}});
  });
  if (!engine.ok()) return engine;
  const EngineInfo& info = engine->engine->info();
  LogInfo("loaded", {{"model", info.model_name},
                     {"numerics_class", info.numerics_class},
                     {"usable_ids", info.usable_ids},
                     {"context_limit", info.context_limit},
                     {"kv_blocks", info.total_blocks},
                     {"block_size", info.block_size},
                     {"tokenizer", engine->tokenizer_fingerprint},
                     {"seconds", absl::ToDoubleSeconds(RealClock::Get().Now() - start)}});
  return engine;
}

std::vector<wire::StepSample> WorkerRunner::Measure(Engine* engine) {
  // Steps of the fake engine cost nothing.
  if (!options_.calibrate || options_.engine == "fake") return {};
  return Calibrate(
      {.max_rows = options_.max_rows, .max_step_tokens = options_.max_step_tokens},
      RealClock::Get(), engine, [this](int done, int total) {
        phase_.SetNotReady(absl::StrCat("measuring steps: ", done, " of ", total, " shapes"));
      });
}

void WorkerRunner::Serve(WorkerEngine made) {
  const RealClock& clock = RealClock::Get();
  WorkerCoreOptions core_options = CoreOptions(role_, options_, made);
  core_options.samples = Measure(made.engine.get());
  phase_.SetNotReady(absl::StrCat("connecting to the scheduler at ", options_.scheduler));
  WorkerCore core(std::move(core_options), made.engine.get());
  AttachClient client(options_.scheduler, &clock, &gauges_, &inbox_);
  StepLoop loop({.core = &core,
                 .engine = made.engine.get(),
                 .client = &client,
                 .inbox = &inbox_,
                 .gauges = &gauges_,
                 .metrics = &metrics_,
                 .phase = &phase_,
                 .clock = &clock});
  {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    loop_ = &loop;
  }
  loop.Run();
  MutexLock lock(&mutex_);
  loop_ = nullptr;
}

}  // namespace tokenrouter
