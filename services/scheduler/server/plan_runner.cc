#include "services/scheduler/server/plan_runner.h"

#include <sys/resource.h>
#include <time.h>

#include <utility>

#include "libs/telemetry/log.h"

namespace tokenrouter {
namespace {

// At most one plan per pair is requested at a time.
constexpr size_t kMailbox = 1024;
constexpr int kNice = 10;

absl::Duration ThreadTime() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return absl::DurationFromTimespec(spent);
}

}  // namespace

PlanRunner::PlanRunner() : loop_({.name = "planner", .mailbox_limit = kMailbox}) { loop_.Start(); }

void PlanRunner::Start(const PlanInputs& inputs) {
  const bool posted = loop_.Post([this, inputs] {
    // On Linux every thread has its own priority.
    if (!std::exchange(priority_lowered_, true)) (void)setpriority(PRIO_PROCESS, 0, kNice);
    Finish(Make(inputs));
  });
  if (!posted) Finish({.pair = inputs.pair, .plan = {}, .cost = {}});
}

PlanRunner::Done PlanRunner::Make(const PlanInputs& inputs) {
  const absl::Duration begin = ThreadTime();
  absl::StatusOr<PairPlan> plan = MakePlan(inputs);
  Done done{.pair = inputs.pair, .plan = {}, .cost = ThreadTime() - begin};
  if (plan.ok()) {
    done.plan = *std::move(plan);
  } else {
    LogWarning("no_plan", {{"pair", inputs.pair}, {"status", plan.status()}});
  }
  return done;
}

void PlanRunner::Finish(Done done) {
  MutexLock lock(&mutex_);
  done_.push_back(std::move(done));
}

std::vector<PlanRunner::Done> PlanRunner::TakeDone() {
  MutexLock lock(&mutex_);
  return std::exchange(done_, {});
}

}  // namespace tokenrouter
