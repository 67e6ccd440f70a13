#include "tests/simulation/world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/batching_model/policy_name.h"

namespace tokenrouter::simulation {
namespace {

constexpr int32_t kUsableIds = 500;
constexpr TokenId kEos = 499;
constexpr absl::Duration kFaultsWithin = absl::Milliseconds(600);
constexpr absl::Duration kGiveUp = absl::Seconds(120);
constexpr absl::Duration kLongestMode = absl::Milliseconds(40);
constexpr int kSeedsWithoutFaults = 4;  // One seed in this many has no faults.

CoreOptions DrawOptions(RandomSource* random) {
  CoreOptions options;
  options.credit = random->Chance(0.5) ? 64 : static_cast<Position>(random->Between(2, 24));
  options.string_stop_credit = std::min<Position>(16, options.credit);
  options.large_pool_gone = LargePoolGone::kWait;
  options.no_large_worker_timeout = options.no_small_worker_timeout = absl::Seconds(60);
  options.keep_unclaimed = absl::Seconds(1);
  options.lease_max = absl::Milliseconds(random->Between(5, 50));
  options.large_alone_window = static_cast<int32_t>(random->Between(1, 40));
  options.shared_threshold = static_cast<int>(random->Between(0, 3));
  options.large_prefill = static_cast<LargePrefill>(random->Between(0, 3));
  options.evict_overdue_after = absl::Milliseconds(random->Between(0, 200));
  options.batching = {.kind = AllPolicyKinds()[random->Between(0, 4)],
                      .m_small = static_cast<int>(random->Between(1, 4)),
                      .m_large = static_cast<int>(random->Between(1, 5)),
                      .wait_small_ms = 0.1 * static_cast<double>(random->Between(0, 40)),
                      .wait_large_ms = 0.1 * static_cast<double>(random->Between(0, 100))};
  options.defer_cap = absl::Milliseconds(random->Between(1, 300));
  return options;
}

}  // namespace

World::World(uint64_t seed) : random_(seed), options_(DrawOptions(&random_)) {
  if (random_.Chance(0.2)) delays_.slow_share = 0.2;
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    models_[Index(role)] = {.seed = random_.Bits(),
                            .role = role,
                            .acceptance_rate = 0.8,
                            .usable_ids = kUsableIds,
                            .eos_ids = {kEos},
                            .eos_probability = 0.02};
  }
  models_[1].seed = models_[0].seed;
  DrawPolicy();
  scheduler_ = std::make_unique<SimulatedScheduler>(&events_, &random_, options_);
  scheduler_->Start(absl::ZeroDuration());
  shared_device_ = random_.Chance(0.4);
  mode_varies_ = random_.Chance(0.6);
  if (!mode_varies_) scheduler_->ForceMode(ServiceMode::kRouted);
  if (mode_varies_ && random_.Chance(0.7)) FlipMode();
  if (random_.Between(1, kSeedsWithoutFaults) > 1) {
    faults_planned_ = static_cast<int>(random_.Between(1, 6));
  }
  BuildWorkers();
  BuildRequests();
  PlanFaults();
}

// A third of the worlds may give up on requests. They check that each request ends once, for a
// declared reason, and that the tokens it got are right.
void World::DrawPolicy() {
  classes_differ_ = random_.Chance(0.2);
  strict_ = random_.Chance(0.67);
  workers_stay_ = strict_ && random_.Chance(0.3);
  if (workers_stay_) {
    options_.large_pool_gone = static_cast<LargePoolGone>(random_.Between(0, 2));
  }
  if (strict_) return;
  options_.large_pool_gone = static_cast<LargePoolGone>(random_.Between(0, 2));
  options_.no_large_worker_timeout = options_.no_small_worker_timeout =
      absl::Milliseconds(random_.Between(0, 300));
  options_.admission_timeout = absl::Milliseconds(random_.Between(1, 300));
  options_.max_requests = static_cast<int>(random_.Between(2, 8));
  options_.max_queued = static_cast<int>(random_.Between(0, 3));
}

void World::BuildWorkers() {
  for (const Role role : {Role::kSmall, Role::kLarge}) {
    const auto count = random_.Between(1, 2);
    for (int i = 0; i < count; ++i) {
      WorkerSetup setup;
      setup.core.role = role;
      setup.core.worker_id = absl::StrCat(RoleName(role), i);
      setup.core.pair = "pair";
      setup.core.tokenizer_fingerprint = "tokenizer";
      setup.core.eos_ids = {kEos};
      setup.core.device_key = shared_device_ ? "device" : "";
      setup.core.max_sequences = static_cast<int32_t>(random_.Between(1, 8));
      setup.core.max_rows = static_cast<int32_t>(random_.Between(1, 16));
      setup.core.max_step_tokens = random_.Chance(0.5) ? 512 : 80;
      setup.engine.model = models_[Index(role)];
      setup.engine.model_name = RoleName(role);
      if (classes_differ_) setup.numerics_class = absl::StrCat(RoleName(role), i);
      setup.engine.context_limit = 128;
      setup.engine.block_size = 8;
      // One request fills up to 14 blocks.
      setup.engine.total_blocks =
          random_.Chance(0.4) ? 1024 : static_cast<int64_t>(random_.Between(16, 40));
      setup.step_base = absl::Microseconds(random_.Between(300, 4000));
      workers_.push_back(std::make_unique<SimulatedWorker>(&events_, &random_, scheduler_.get(),
                                                           setup, delays_,
                                                           shared_device_ ? &device_ : nullptr));
      workers_.back()->Start();
    }
  }
}

void World::BuildRequests() {
  const auto gateways = random_.Between(1, 2);
  for (int i = 0; i < gateways; ++i) {
    gateways_.push_back(std::make_unique<SimulatedGateway>(&events_, &random_, scheduler_.get(),
                                                           absl::StrCat("gateway", i), delays_));
  }
  const auto requests = random_.Between(2, 8);
  for (int i = 0; i < requests; ++i) {
    gateways_[random_.Between(0, gateways - 1)]->Run(DrawRequest(i));
  }
}

ClientPlan World::DrawRequest(int number) {
  ClientPlan plan;
  const auto length = random_.Between(1, 40);
  for (int i = 0; i < length; ++i) {
    plan.prompt.push_back(static_cast<TokenId>(random_.Between(0, kUsableIds - 2)));
  }
  wire::GenerationSpec& spec = plan.spec;
  spec.set_request_id(absl::StrCat("request", number));
  spec.set_pair("pair");
  spec.set_prompt_length(static_cast<int32_t>(length));
  spec.mutable_stop()->set_max_new_tokens(static_cast<int32_t>(random_.Between(1, 60)));
  if (random_.Chance(0.2)) spec.mutable_stop()->set_ignore_eos(true);
  DrawSampling(&spec);
  api::RoutingParameters& routing = *spec.mutable_routing();
  static constexpr const char* kAlgorithms[] = {"never", "always", "random", "entropy",
                                                "speculative"};
  routing.set_algorithm(kAlgorithms[random_.Between(0, 4)]);
  if (routing.algorithm() == "random") {
    (*routing.mutable_parameters())["p"] = 0.05 * static_cast<double>(random_.Between(0, 12));
    if (random_.Chance(0.5)) {
      (*routing.mutable_parameters())["window"] = static_cast<double>(random_.Between(2, 12));
    }
  } else if (routing.algorithm() == "entropy") {
    (*routing.mutable_parameters())["threshold"] = 0.45;
  } else if (routing.algorithm() == "speculative") {
    const auto window = random_.Between(1, 6);
    (*routing.mutable_parameters())["window"] = static_cast<double>(window);
    plan.credit_slack = static_cast<Position>(window + 1);
  }
  if (random_.Chance(0.2)) {
    spec.set_service_mode(random_.Chance(0.5) ? api::SERVICE_MODE_ROUTED
                                              : api::SERVICE_MODE_LARGE_ALONE);
  }
  DrawBounds(&spec);
  spec.set_string_stops(random_.Chance(0.3));
  plan.credit_window = spec.string_stops() ? options_.string_stop_credit : options_.credit;
  plan.starts_after = random_.Between(absl::ZeroDuration(), absl::Milliseconds(200));
  plan.reads_in = random_.Chance(0.8)
                      ? random_.Between(absl::ZeroDuration(), absl::Milliseconds(2))
                      : random_.Between(absl::Milliseconds(10), absl::Milliseconds(300));
  if (random_.Chance(0.15)) plan.cancels_after = static_cast<int>(random_.Between(1, 20));
  if (spec.string_stops() && random_.Chance(0.5)) {
    plan.stops_after = static_cast<int>(random_.Between(1, 20));
  }
  return plan;
}

void World::DrawBounds(wire::GenerationSpec* spec) {
  const auto bound = [this] {
    return random_.Chance(0.2) ? static_cast<int32_t>(random_.Between(1, 100)) : 0;
  };
  spec->set_max_defer_ms(bound());
  spec->set_ttft_slo_ms(bound());
  spec->set_token_slo_ms(bound());
}

void World::DrawSampling(wire::GenerationSpec* spec) {
  api::SamplingParameters& sampling = *spec->mutable_sampling();
  sampling.set_temperature(random_.Chance(0.5) ? 0.0f : 1.0f);
  sampling.set_seed(random_.Bits());
  if (random_.Chance(0.2)) spec->set_choice(static_cast<uint32_t>(random_.Between(1, 3)));
  if (random_.Chance(0.3)) {
    sampling.set_frequency_penalty(0.1f * static_cast<float>(random_.Between(-5, 10)));
    sampling.set_presence_penalty(0.1f * static_cast<float>(random_.Between(-5, 10)));
    sampling.set_repetition_penalty(0.1f * static_cast<float>(random_.Between(5, 20)));
  }
  if (random_.Chance(0.2)) {
    for (int i = 0; i < 3; ++i) {
      (*sampling.mutable_logit_bias())[static_cast<TokenId>(random_.Between(0, kUsableIds - 1))] =
          static_cast<float>(random_.Between(-5, 5));
    }
  }
  if (random_.Chance(0.3)) {
    spec->mutable_stop()->set_min_new_tokens(
        static_cast<int32_t>(random_.Between(0, spec->stop().max_new_tokens())));
  }
}

void World::PlanFaults() {
  for (int i = 0; i < faults_planned_; ++i) {
    events_.After(random_.Between(absl::ZeroDuration(), kFaultsWithin), [this] { Fault(); });
  }
}

void World::Fault() {
  SimulatedWorker& worker = *workers_[random_.Between(0, workers_.size() - 1)];
  switch (random_.Between(workers_stay_ ? 4 : 0, 7)) {
    case 0:
    case 1:
      KillWorker();
      break;
    case 2:
      worker.Cut(random_.Chance(0.3));
      break;
    case 3:
      worker.Freeze(DrawPause());
      break;
    case 4:
      gateways_[random_.Between(0, gateways_.size() - 1)]->Cut(random_.Chance(0.3));
      break;
    case 5:
      scheduler_->Freeze(DrawPause());
      break;
    default:
      KillScheduler();
  }
}

absl::Duration World::DrawPause() {
  return random_.Chance(0.5) ? absl::Milliseconds(random_.Between(5, 200))
                             : absl::Seconds(random_.Between(2, 8));
}

void World::KillWorker() {
  SimulatedWorker* const worker = workers_[random_.Between(0, workers_.size() - 1)].get();
  worker->Kill();
  events_.After(random_.Between(absl::Milliseconds(1), absl::Seconds(2)), [worker] {
    if (!worker->running()) worker->Start();
  });
}

void World::KillScheduler() {
  scheduler_->Kill();
  // The next scheduler's clock may be behind.
  const absl::Duration skew =
      random_.Chance(0.3) ? -absl::Seconds(random_.Between(1, 100)) : absl::ZeroDuration();
  events_.After(random_.Between(absl::Milliseconds(1), absl::Seconds(1)), [this, skew] {
    if (!scheduler_->running()) scheduler_->Start(skew);
  });
}

void World::FlipMode() {
  scheduler_->ForceMode(random_.Chance(0.5) ? ServiceMode::kRouted : ServiceMode::kLargeAlone);
  events_.After(random_.Between(absl::Microseconds(100), kLongestMode), [this] { FlipMode(); });
}

WorldOutcome World::Run() {
  const absl::Time give_up = events_.now() + kGiveUp;
  const absl::Time faults_over = events_.now() + kFaultsWithin;
  while (!Quiet() || events_.now() < faults_over) {
    if (!events_.Step(give_up)) break;
  }
  WorldOutcome outcome;
  outcome.faults = faults_planned_;
  outcome.events = events_.ran();
  outcome.fingerprint = static_cast<uint64_t>(absl::ToUnixNanos(events_.now()));
  for (const auto& gateway : gateways_) {
    for (const auto& [handle, record] : gateway->records()) {
      outcome.tokens += record.ids.size();
      outcome.large_alone += static_cast<uint64_t>(record.large_alone);
      for (const TokenId id : record.ids) {
        outcome.fingerprint = outcome.fingerprint * 1099511628211u + static_cast<uint64_t>(id);
      }
    }
  }
  for (const std::string& failure : {CheckAnswers(), CheckMemory(), CheckDevice()}) {
    if (outcome.failure.empty() && !failure.empty()) {
      outcome.failure = absl::StrCat(failure, "\n", Describe());
    }
  }
  return outcome;
}

// All requests have ended and all KV blocks are free.
bool World::Quiet() const {
  for (const auto& gateway : gateways_) {
    if (!gateway->AllEnded()) return false;
  }
  return CheckMemory().empty();
}

std::string World::Describe() const {
  std::string text = absl::StrCat("time ", absl::FormatTime(events_.now()), ", faults ",
                                  faults_planned_, ", shared device ", shared_device_,
                                  ", scheduler restarts ", scheduler_->restarts());
  for (const auto& worker : workers_) absl::StrAppend(&text, "\n  ", worker->Describe());
  if (!scheduler_->running()) return text;
  for (const uint64_t key : scheduler_->core().requests().Keys()) {
    const RequestMachine& request = *scheduler_->core().requests().Find(key);
    absl::StrAppend(
        &text, "\n  ", request.spec().request_id(), " ", kPhaseNames[Index(request.phase())],
        ", decode grant ", RoleName(request.grant().role), ", committed ",
        request.history().committed(), " of ", request.history().size(), ", acked ",
        request.acked(), ", credit-blocked ", request.credit_blocked(), ", small epoch ",
        request.side(Role::kSmall).epoch, " on ", request.side(Role::kSmall).worker,
        ", large epoch ", request.side(Role::kLarge).epoch, " on ",
        request.side(Role::kLarge).worker, ", credit ", request.side(request.grant().role).credit);
  }
  return text;
}

}  // namespace tokenrouter::simulation
