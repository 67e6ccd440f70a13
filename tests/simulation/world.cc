#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kGiveUp = absl::Minutes(40);
// After the last request ended and the last fault, until nothing is left of them anywhere: longer
// than the end of a stream stays unnoticed, shorter than the timers of a request.
constexpr absl::Duration kQuietWithin = absl::Seconds(60);
constexpr absl::Duration kLongestMode = absl::Milliseconds(40);
constexpr absl::Duration kResubmitAfter = absl::Milliseconds(300);
// For so long a client that finds its request in flight tries again: longer than any stream of a
// dead gateway can stay unnoticed.
constexpr int kMostAttempts = 400;
// Decisions under way when a worker came back.
constexpr absl::Duration kGivenUpMargin = absl::Milliseconds(100);
// The run's random numbers are others than those of its scenario.
constexpr uint64_t kRunSalt = 0x9E3779B97F4A7C15u;

}  // namespace

World::World(uint64_t seed) : scenario_(DrawScenario(seed)), deployment_(seed ^ kRunSalt) {}

void World::PrintTimeline() {
  deployment_.timeline.Print();
  std::printf("%s\n", simulation::Describe(scenario_).c_str());
}

void World::BuildSchedulers() {
  for (int i = 0; i < 2; ++i) {
    auto scheduler = std::make_unique<SimulatedScheduler>(
        &deployment_.events, &deployment_.random, scenario_.options, absl::StrCat("scheduler", i),
        &deployment_.timeline);
    scheduler->Observe(
        {.on_pool_given_up = [this, process = scheduler.get()](
                                 const std::string& pair,
                                 Role role) { JudgeGivenUpPool(process, pair, role); },
         .on_worker_judged = [this, process = scheduler.get()](
                                 const std::string& id,
                                 const absl::Status& why) { JudgeDeadWorker(process, id, why); }});
    if (!scenario_.mode_varies) scheduler->ForceMode(ServiceMode::kRouted);
    deployment_.schedulers[i] = std::move(scheduler);
  }
  deployment_.address =
      std::make_unique<SchedulerAddress>(&deployment_.random, deployment_.schedulers[0].get());
  deployment_.scheduler().Start(absl::ZeroDuration());
  if (scenario_.mode_flips) FlipMode();
}

void World::BuildPeers() {
  Deployment& d = deployment_;
  for (size_t i = 0; i < scenario_.pairs.size(); ++i) {
    d.devices.push_back(std::make_unique<DeviceUse>());
  }
  for (const WorkerSetup& setup : scenario_.workers) {
    const PairScenario& pair = scenario_.PairOf(setup.core.pair);
    const auto number = static_cast<size_t>(&pair - scenario_.pairs.data());
    DeviceUse* const device = pair.shared_device ? d.devices[number].get() : nullptr;
    d.workers.push_back(std::make_unique<SimulatedWorker>(
        &d.events, &d.random, d.address.get(), setup, scenario_.delays, device, &d.timeline));
    d.workers.back()->Start();
  }
  for (size_t i = 0; i < scenario_.gateways.size(); ++i) {
    LinkOptions options;
    options.gateway_id = absl::StrCat("gateway", i);
    options.pair = scenario_.gateways[i];
    options.tokenizer_fingerprint = "tokenizer";
    options.submit_wait = options.resume_wait = scenario_.submit_wait;
    d.gateways.push_back(std::make_unique<SimulatedGateway>(
        &d.events, &d.random, d.address.get(), options, scenario_.delays, &d.timeline));
    d.gateways.back()->OnEnd([this](const ClientRecord& record) { Resubmit(record); });
  }
}

void World::FlipMode() {
  const ServiceMode mode =
      deployment_.random.Chance(0.5) ? ServiceMode::kRouted : ServiceMode::kLargeAlone;
  for (const auto& scheduler : deployment_.schedulers) scheduler->ForceMode(mode);
  const absl::Duration longest = std::max(kLongestMode, scenario_.faults_within / 1000);
  deployment_.events.After(deployment_.random.Between(absl::Microseconds(100), longest),
                           [this] { FlipMode(); });
}

// A client whose gateway died submits the same request again, under its id, to any gateway of the
// pair; while the earlier submission is still in flight that is refused, and it tries again.
void World::Resubmit(const ClientRecord& record) {
  const bool in_flight = record.error.code() == absl::StatusCode::kAlreadyExists;
  const bool again = record.plan.resubmits && (record.lost || in_flight) && record.attempt > 0;
  const bool first = record.plan.resubmits && record.lost && record.attempt == 0;
  if ((!again && !first) || record.attempt >= kMostAttempts) {
    --clients_running_;
    return;
  }
  std::vector<SimulatedGateway*> gateways;
  for (const auto& gateway : deployment_.gateways) {
    if (gateway->pair() == record.plan.spec.pair()) gateways.push_back(gateway.get());
  }
  ClientPlan plan = record.plan;
  plan.starts_after = deployment_.random.Between(absl::Milliseconds(1), kResubmitAfter);
  gateways[deployment_.random.Bits() % gateways.size()]->Run(plan, record.attempt + 1);
}

// No request is given up for an empty pool while a worker of that pool serves, or is on its way
// back to this scheduler though nothing happened to itself. A scheduler that never had the worker,
// because the one that it took over from still lives, cannot know that it will come.
void World::JudgeGivenUpPool(const SimulatedScheduler* scheduler, const std::string& pair,
                             Role role) {
  if (role == Role::kLarge && scenario_.classes_differ) return;  // Marked for another reason.
  for (const auto& worker : deployment_.workers) {
    if (worker->options().pair != pair || worker->options().role != role) continue;
    const bool well = worker->troubles().well_since <= deployment_.events.now();
    if (well && worker->last_scheduler() == scheduler) {
      Complain(absl::StrCat("a pool was given up though ", worker->Describe(), " was well"));
    }
    const absl::Time since = worker->troubles().serving_since;
    if (since == absl::InfiniteFuture() || worker->scheduler() != scheduler) continue;
    deployment_.events.After(kGivenUpMargin, [this, worker = worker.get(), since] {
      if (worker->troubles().serving_since != since) return;
      Complain(absl::StrCat("a pool was given up though ", worker->Describe(), " served"));
    });
  }
}

void World::JudgeDeadWorker(const SimulatedScheduler* scheduler, const std::string& worker_id,
                            const absl::Status& why) {
  if (why.code() != absl::StatusCode::kUnavailable) return;
  for (const auto& worker : deployment_.workers) {
    // Elsewhere: it attached to the other scheduler, and this one has not noticed yet.
    if (worker->process() != worker_id || worker->scheduler() != scheduler ||
        worker->troubles().well_since > deployment_.events.now())
      continue;
    Complain(absl::StrCat(worker->Describe(), " was well, but ", why.message()));
  }
}

void World::Complain(const std::string& what) {
  deployment_.timeline.Note("check", what);
  if (complaint_.empty()) complaint_ = what;
}

WorldOutcome World::Run() {
  Deployment& d = deployment_;
  BuildSchedulers();
  BuildPeers();
  for (const ClientScenario& client : scenario_.clients) {
    ++clients_running_;
    d.gateways[static_cast<size_t>(client.gateway)]->Run(client.plan);
  }
  absl::Time faults_over = d.events.now();
  for (const Fault& fault : scenario_.faults) {
    faults_over = std::max(faults_over, d.events.now() + fault.at + fault.lasts);
    d.events.After(fault.at, [this, &fault] {
      deployment_.timeline.Note("fault", fault.kind->name);
      fault.kind->happens(&deployment_, fault);
    });
  }
  const absl::Time give_up = d.events.now() + scenario_.faults_within + kGiveUp;
  absl::Time busy_until = faults_over;
  while (d.events.now() < faults_over || !Quiet()) {
    if (clients_running_ > 0) busy_until = std::max(busy_until, d.events.now());
    if (!d.events.Step(std::min(give_up, busy_until + kQuietWithin))) break;
  }
  WorldOutcome outcome = Count();
  for (const std::string& failure : {complaint_, CheckAnswers(), CheckEnd()}) {
    if (outcome.failure.empty() && !failure.empty()) {
      outcome.failure = absl::StrCat(failure, "\n", Describe());
    }
  }
  return outcome;
}

WorldOutcome World::Count() const {
  WorldOutcome outcome;
  outcome.faults = scenario_.faults.size();
  outcome.events = deployment_.events.ran();
  outcome.fingerprint = static_cast<uint64_t>(absl::ToUnixNanos(deployment_.events.now()));
  for (const auto& gateway : deployment_.gateways) {
    for (const auto& [handle, record] : gateway->records()) {
      outcome.tokens += record.ids.size();
      outcome.large_alone += static_cast<uint64_t>(record.large_alone);
      ++(record.error.ok() && !record.lost ? outcome.answered : outcome.given_up);
      for (const TokenId id : record.ids) {
        outcome.fingerprint = outcome.fingerprint * 1099511628211u + static_cast<uint64_t>(id);
      }
    }
  }
  return outcome;
}

// All requests have ended and nothing is left of them anywhere.
bool World::Quiet() const { return clients_running_ == 0 && CheckEnd().empty(); }

std::string World::Describe() const {
  const Deployment& d = deployment_;
  std::string text = absl::StrCat(
      "after ", absl::FormatDuration(d.events.now() - EventQueue::Start()), ", faults ",
      scenario_.faults.size(), ", scheduler restarts ", d.scheduler().restarts());
  for (const auto& worker : d.workers) absl::StrAppend(&text, "\n  ", worker->Describe());
  if (!d.scheduler().running()) return text;
  d.scheduler().core().requests().ForEach([&text](const RequestMachine& request) {
    absl::StrAppend(&text, "\n  ", request.spec().request_id(), " ", request.phase().name(),
                    ", decode grant ", RoleName(request.grant().role), ", committed ",
                    request.history().committed(), " of ", request.history().size(), ", acked ",
                    request.service().client.acked, ", credit-blocked ", request.credit_blocked(),
                    ", small epoch ", request.side(Role::kSmall).epoch, " on ",
                    request.side(Role::kSmall).worker, ", large epoch ",
                    request.side(Role::kLarge).epoch, " on ", request.side(Role::kLarge).worker,
                    ", credit ", request.side(request.grant().role).credit);
  });
  return text;
}

}  // namespace tokenrouter::simulation
