#include "tests/simulation/closed_loop.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "libs/paging/block_types.h"
#include "libs/status/status_macros.h"
#include "libs/worker/step/batch_planner.h"
#include "tests/simulation/process/simulated_gateway.h"
#include "tests/simulation/process/simulated_worker.h"

namespace tokenrouter::simulation {
namespace {

constexpr int32_t kUsableIds = 500;
constexpr int32_t kBlock = 16;
// How often the loop looks for requests that ended.
constexpr absl::Duration kLook = absl::Milliseconds(1);
constexpr absl::Duration kGiveUp = absl::Hours(2);

class ClosedLoop {
 public:
  explicit ClosedLoop(const ClosedLoopOptions& options) : options_(options) {}

  absl::StatusOr<ClosedLoopResult> Run() {
    scheduler_ = std::make_unique<SimulatedScheduler>(&events_, &random_, options_.core);
    scheduler_->MakePlans();
    scheduler_->Start(absl::ZeroDuration());
    address_ = std::make_unique<SchedulerAddress>(&random_, scheduler_.get());
    for (const Role role : {Role::kSmall, Role::kLarge}) TR_RETURN_IF_ERROR(AddWorker(role));
    LinkOptions link;
    link.gateway_id = "gateway";
    link.pair = "pair";
    gateway_ =
        std::make_unique<SimulatedGateway>(&events_, &random_, address_.get(), link, delays_);
    Look();
    const absl::Time until = events_.now() + kGiveUp;
    while (ended_ < total() && events_.Step(until)) {
    }
    if (ended_ < total()) return absl::DeadlineExceededError("the system makes no progress");
    return Report();
  }

 private:
  int total() const { return options_.requests * options_.rounds; }

  absl::Status AddWorker(Role role) {
    WorkerSetup setup;
    setup.core.role = role;
    setup.core.worker_id = RoleName(role);
    setup.core.pair = "pair";
    setup.core.device_key = options_.shared_device ? "device" : "";
    setup.engine.model = {
        .seed = 7, .role = role, .acceptance_rate = 0.9, .usable_ids = kUsableIds};
    setup.engine.block_size = kBlock;
    TR_ASSIGN_OR_RETURN(setup.curve, StepCurve::Parse(options_.set, role));
    if (role == Role::kLarge) {
      const int64_t longest = BlocksFor(options_.most_prompt + options_.new_tokens, kBlock);
      const int64_t shortest = BlocksFor(options_.least_prompt + options_.new_tokens, kBlock);
      const double wanted = static_cast<double>(options_.requests * (longest + shortest)) / 2;
      setup.engine.total_blocks = std::max(longest, static_cast<int64_t>(wanted * options_.pool));
      result_.large_blocks = setup.engine.total_blocks;
    }
    workers_.push_back(std::make_unique<SimulatedWorker>(&events_, &random_, address_.get(), setup,
                                                         delays_, nullptr));
    workers_.back()->Start();
    return absl::OkStatus();
  }

  ClientPlan NextRequest() {
    RandomSource own(1000 + started_);
    ClientPlan plan;
    const auto length = own.Between(options_.least_prompt, options_.most_prompt);
    for (int i = 0; i < length; ++i) {
      plan.prompt.push_back(static_cast<TokenId>(own.Between(0, kUsableIds - 1)));
    }
    wire::GenerationSpec& spec = plan.spec;
    spec.set_request_id(absl::StrCat(started_++));
    spec.set_pair("pair");
    spec.set_prompt_length(static_cast<int32_t>(length));
    spec.mutable_stop()->set_max_new_tokens(options_.new_tokens);
    spec.mutable_stop()->set_ignore_eos(true);
    spec.mutable_sampling()->set_seed(own.Bits());
    spec.mutable_routing()->set_algorithm("random");
    (*spec.mutable_routing()->mutable_parameters())["p"] = options_.r;
    plan.credit_window = options_.core.credit;
    return plan;
  }

  // Replaces requests that have ended.
  void Look() {
    int ended = 0;
    for (const auto& [handle, record] : gateway_->records()) ended += record.ended;
    ended_ = ended;
    while (started_ < total() && started_ - ended_ < options_.requests) {
      gateway_->Run(NextRequest());
    }
    const absl::Duration wait = scheduler_->core().OldestLargeWait(events_.now());
    result_.longest_wait = std::max(result_.longest_wait, wait);
    // Measures neither while the loop fills nor while it empties.
    if (ended_ < total() / 4) {
      from_ = events_.now();
      tokens_before_ = Tokens();
    }
    if (started_ < total()) {
      to_ = events_.now();
      tokens_after_ = Tokens();
    }
    events_.After(kLook, [this] { Look(); });
  }

  uint64_t Tokens() const {
    uint64_t tokens = 0;
    for (const uint64_t author : scheduler_->core().counters().tokens) tokens += author;
    return tokens;
  }

  ClosedLoopResult Report() {
    result_.committed_per_s =
        static_cast<double>(tokens_after_ - tokens_before_) / absl::ToDoubleSeconds(to_ - from_);
    result_.counters = scheduler_->core().counters();
    result_.preemptions = workers_[Index(Role::kLarge)]->counters().preemptions;
    for (const auto& [handle, record] : gateway_->records()) {
      result_.failed += !record.error.ok();
      int number = 0;
      if (absl::SimpleAtoi(record.plan.spec.request_id(), &number)) {
        result_.answers[number] = record.ids;
      }
    }
    return result_;
  }

  const ClosedLoopOptions options_;
  EventQueue events_;
  RandomSource random_{1};
  const WireDelays delays_ = {.low = options_.least_delay,
                              .high = options_.most_delay,
                              .slow_share = 0,
                              .slow = absl::Milliseconds(1)};
  std::unique_ptr<SimulatedScheduler> scheduler_;
  std::unique_ptr<SchedulerAddress> address_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::unique_ptr<SimulatedGateway> gateway_;
  int started_ = 0, ended_ = 0;
  absl::Time from_, to_;
  uint64_t tokens_before_ = 0, tokens_after_ = 0;
  ClosedLoopResult result_;
};

}  // namespace

absl::StatusOr<ClosedLoopResult> RunClosedLoop(const ClosedLoopOptions& options) {
  return ClosedLoop(options).Run();
}

}  // namespace tokenrouter::simulation
