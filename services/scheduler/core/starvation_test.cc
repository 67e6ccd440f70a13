// Random policies, loads and bounds against scripted workers on an ideal network: no row waits
// beyond its bound for longer than the steps that run before it, and no request is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "libs/batching_model/policy_name.h"
#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using S = ScriptedScheduler;

absl::Duration Ms(double milliseconds) { return absl::Milliseconds(milliseconds); }

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int Between(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<uint32_t>(high - low + 1));
  }
  bool Chance(double p) { return static_cast<double>(engine_()) / 4294967296.0 < p; }

 private:
  std::mt19937 engine_;
};

struct Request {
  wire::GenerationSpec spec;
  absl::Time submitted;
  absl::Time committed;
  int generated = 0;
  bool ended = false;
};

struct Row {
  uint32_t epoch = 0;
  Position length = 0;  // Committed.
  bool granted = false;
  bool released = false;
  absl::Time since;  // Since when it has been ready.
};

struct Worker {
  StreamId stream = 0;
  Role role = Role::kSmall;
  absl::Duration base, per_row;
  bool shared = false;
  std::map<uint64_t, Row> rows;
  // Its lease, on a shared device.
  uint64_t lease_id = 0;
  bool held = false;
  absl::Time lease_ends;
  int yield_at = 0, handoffs = 0;
  // Its running step.
  std::vector<uint64_t> running;
  absl::Time step_began, step_ends = absl::InfiniteFuture();
};

class Load {
 public:
  explicit Load(uint32_t seed)
      : random_(seed), options_(DrawOptions()), s_(options_), start_(s_.now) {
    const bool shared = random_.Chance(0.5);
    for (const Role role : {Role::kSmall, Role::kLarge}) {
      const int count = random_.Between(1, 2);
      for (int i = 0; i < count; ++i) Attach(role, 10 * (Index(role) + 1) + i, shared);
    }
    s_.Connect();
    requests_left_ = random_.Between(2, 12);
    r_ = 0.05 * random_.Between(1, 10);
    q_ = random_.Chance(0.7) ? 1.0 : 0.5;
  }

  void Run() {
    absl::Time tick = s_.now;
    while (requests_left_ > 0 || ended_ < static_cast<int>(requests_.size())) {
      ASSERT_LT(s_.now, start_ + absl::Minutes(5)) << ended_ << " of " << requests_.size();
      absl::Time next = std::min(tick, s_.core.NextDeadline());
      for (const Worker& worker : workers_) next = std::min(next, worker.step_ends);
      s_.now = std::max(s_.now, next);
      if (s_.now >= tick) {
        tick = s_.now + Ms(10);
        if (requests_left_ > 0 && random_.Chance(0.3)) Submit();
        s_.core.OnTick(s_.now);
        AdoptPlans();
      }
      s_.core.Flush(s_.now);
      Deliver();
      for (Worker& worker : workers_) {
        if (s_.now >= worker.step_ends) EndStep(&worker);
      }
    }
  }
  int steps() const { return steps_; }

 private:
  CoreOptions DrawOptions() {
    CoreOptions options;
    options.batching = {.kind = AllPolicyKinds()[random_.Between(0, 4)],
                        .m_small = random_.Between(1, 4),
                        .m_large = random_.Between(1, 12),
                        .wait_small_ms = 0.5 * random_.Between(0, 20),
                        .wait_large_ms = 0.5 * random_.Between(0, 60)};
    options.defer_cap = Ms(random_.Between(10, 150));
    options.lease_max = Ms(random_.Between(20, 200));
    options.heartbeat = absl::Hours(1);
    return options;
  }

  void Attach(Role role, StreamId stream, bool shared) {
    Worker worker{.stream = stream, .role = role, .shared = shared};
    worker.base = Ms(role == Role::kSmall ? random_.Between(1, 8) : random_.Between(5, 30));
    worker.per_row = Ms(0.1 * random_.Between(0, 10));
    longest_step_ = std::max(longest_step_, 1.2 * (worker.base + 12 * worker.per_row));
    wire::WorkerHello hello = S::Hello(role, std::to_string(stream));
    hello.set_max_sequences(0);
    if (shared) hello.set_device_key("device");
    workers_.push_back(std::move(worker));
    s_.Attach(stream, hello);
  }

  void AdoptPlans() {
    for (const PlanInputs& wanted : s_.core.WantedPlans(s_.now)) {
      PairPlan plan{.inputs = wanted, .prediction = {.routed_per_s = 2, .large_alone_per_s = 1}};
      plan.prediction.policy = {.kind = BatchingPolicy::Kind::kModel,
                                .m_large = random_.Between(1, wanted.requests),
                                .step_small_ms = 1.0 * random_.Between(0, 20),
                                .step_large_ms = 1.0 * random_.Between(0, 60)};
      s_.core.AdoptPlan(wanted.pair, plan, absl::Microseconds(1), s_.now);
    }
  }

  void Submit() {
    --requests_left_;
    const uint64_t key = requests_.size() + 1;
    wire::Submit submit = S::MakeSubmit(key);
    wire::GenerationSpec& spec = *submit.mutable_spec();
    spec.mutable_stop()->set_max_new_tokens(random_.Between(5, 40));
    spec.set_service_mode(api::SERVICE_MODE_ROUTED);
    if (random_.Chance(0.4)) spec.set_max_defer_ms(random_.Between(1, 80));
    if (random_.Chance(0.3)) spec.set_ttft_slo_ms(random_.Between(1, 200));
    if (random_.Chance(0.3)) spec.set_token_slo_ms(random_.Between(1, 100));
    requests_.push_back({.spec = spec, .submitted = s_.now, .committed = s_.now});
    s_.Submit(submit);
  }

  // Delivers everything that the core sent to workers and client, until it sends nothing more.
  void Deliver() {
    for (bool news = true; news;) {
      news = false;
      for (Worker& worker : workers_) {
        const wire::CommandFrame told = s_.Told(worker.stream);
        if (told.ByteSizeLong() == 0) continue;
        news = true;
        Apply(&worker, told);
      }
      const wire::SchedulerFrame heard = s_.Heard();
      EXPECT_EQ(heard.rejections_size(), 0) << heard.ShortDebugString();
      for (const wire::TokenChunk& chunk : heard.chunks()) {
        news = true;
        Hear(chunk);
      }
    }
  }

  void Hear(const wire::TokenChunk& chunk) {
    Request& request = requests_[chunk.handle() - 1];
    request.generated += chunk.ids_size();
    if (chunk.ids_size() > 0) request.committed = s_.now;
    if (chunk.has_finish()) {
      EXPECT_EQ(request.generated, request.spec.stop().max_new_tokens());
      request.ended = true;
      ++ended_;
    } else {
      s_.Ack(chunk.handle(), chunk.base_position() + chunk.ids_size());
    }
  }

  void Apply(Worker* worker, const wire::CommandFrame& told) {
    const auto grant = [&](Row* row) {
      row->granted = true;
      row->released = worker->role == Role::kSmall;
      row->since = s_.now;
    };
    for (const wire::Open& open : told.opens()) {
      Row& row = worker->rows[open.request()];
      row = {.epoch = open.epoch(), .length = open.ids_size()};
      if (open.has_grant()) grant(&row);
    }
    for (const wire::Extend& extend : told.extends()) {
      Row& row = worker->rows[extend.request()];
      row.length = extend.base() + extend.ids_size();
      if (extend.has_grant()) grant(&row);
    }
    for (const uint64_t request : told.releases()) worker->rows[request].released = true;
    wire::WorkerFrame closed;
    for (const wire::Close& close : told.closes()) {
      worker->rows.erase(close.request());
      closed.add_closed(close.request());
    }
    if (told.has_lease()) Grant(worker, told.lease());
    if (closed.closed_size() > 0) s_.ToCore(worker->stream, closed);
    StartStep(worker);
  }

  void Grant(Worker* worker, const wire::Lease& lease) {
    const absl::Time ends = s_.now + Ms(lease.max_ms());
    if (lease.lease_id() == worker->lease_id) {
      worker->lease_ends = std::min(worker->lease_ends, ends);
      return;
    }
    for (const Worker& other : workers_) EXPECT_FALSE(other.held) << "two leases at once";
    worker->lease_id = lease.lease_id();
    worker->lease_ends = ends;
    worker->yield_at = lease.yield_at_handoffs();
    worker->handoffs = 0;
    worker->held = true;
  }

  int Ready(const Worker& worker) const {
    return static_cast<int>(std::count_if(worker.rows.begin(), worker.rows.end(), [](auto& row) {
      return row.second.granted && row.second.released;
    }));
  }

  void StartStep(Worker* worker) {
    if (worker->step_ends != absl::InfiniteFuture()) return;
    if (worker->shared && !worker->held) return;
    if (worker->held && (Ready(*worker) == 0 || s_.now >= worker->lease_ends)) {
      wire::WorkerFrame frame;
      AddReturn(worker, &frame);
      if (frame.has_lease_return()) s_.ToCore(worker->stream, frame);
      return;
    }
    if (Ready(*worker) == 0) return;
    for (auto& [key, row] : worker->rows) {
      if (!row.granted || !row.released) continue;
      worker->running.push_back(key);
      Check(*worker, key, row);
    }
    const auto rows = static_cast<int>(worker->running.size());
    worker->step_began = s_.now;
    worker->step_ends =
        s_.now + (worker->base + rows * worker->per_row) * (0.01 * random_.Between(90, 110));
    ++steps_;
  }

  // Expects that the row starts in time.
  void Check(const Worker& worker, uint64_t key, const Row& row) {
    const Request& request = requests_[key - 1];
    const wire::GenerationSpec& spec = request.spec;
    absl::Duration most = options_.defer_cap;
    if (spec.max_defer_ms() > 0) most = std::min(most, Ms(spec.max_defer_ms()));
    absl::Time bound = row.since + most;
    const bool started = request.generated > 0;
    const int32_t target = started ? spec.token_slo_ms() : spec.ttft_slo_ms();
    const absl::Time from = started ? request.committed : request.submitted;
    if (target > 0) bound = std::min(bound, std::max(row.since, from + Ms(target)));
    // On a dedicated device only the running step is ahead. On a shared device that step is ahead
    // and one of each other worker with more urgent rows, and once more if rows become urgent
    // again.
    const auto ahead = worker.shared ? 2 * static_cast<double>(workers_.size()) : 1.0;
    EXPECT_LE(s_.now - bound, ahead * longest_step_ + Ms(1))
        << RoleName(worker.role) << " request " << key << " waited " << s_.now - row.since
        << " under " << DescribePolicy(options_.batching, worker.shared);
  }

  void AddReturn(Worker* worker, wire::WorkerFrame* frame) {
    const int ready = Ready(*worker);
    const bool left = worker->yield_at > 0 && worker->handoffs >= worker->yield_at;
    if (!worker->held || (ready > 0 && s_.now < worker->lease_ends && !left)) return;
    worker->held = false;
    frame->mutable_lease_return()->set_lease_id(worker->lease_id);
    frame->mutable_lease_return()->set_ready(ready);
  }

  void EndStep(Worker* worker) {
    wire::WorkerFrame frame;
    const auto rows = static_cast<int32_t>(worker->running.size());
    frame.mutable_step()->set_rows(rows);
    frame.mutable_step()->set_new_ids(rows);
    frame.mutable_step()->set_elapsed_us(absl::ToInt64Microseconds(s_.now - worker->step_began));
    for (const uint64_t key : std::exchange(worker->running, {})) {
      const auto found = worker->rows.find(key);
      if (found == worker->rows.end()) continue;  // Closed meanwhile.
      EndRow(worker, key, &found->second, &frame);
    }
    worker->step_ends = absl::InfiniteFuture();
    AddReturn(worker, &frame);
    s_.ToCore(worker->stream, frame);
    Deliver();
    StartStep(worker);
    Deliver();
  }

  void EndRow(Worker* worker, uint64_t key, Row* row, wire::WorkerFrame* frame) {
    const bool small = worker->role == Role::kSmall;
    const bool hands_off = random_.Chance(small ? r_ : q_);
    std::vector<TokenId> ids;
    if (!small || !hands_off) ids.push_back(40);
    wire::RowReport report = S::Row(key, row->epoch, row->length, ids, small ? 1 : 2);
    row->length += static_cast<Position>(ids.size());
    row->since = s_.now;
    if (hands_off) {
      report = S::HandingOff(report, small ? Role::kLarge : Role::kSmall);
      row->granted = row->released = false;
      ++worker->handoffs;
    }
    *frame->add_rows() = report;
  }

  Random random_;
  const CoreOptions options_;
  S s_;
  const absl::Time start_;
  std::vector<Worker> workers_;
  absl::Duration longest_step_ = absl::ZeroDuration();
  std::vector<Request> requests_;  // Number = key - 1.
  int requests_left_ = 0;
  int ended_ = 0;
  int steps_ = 0;
  double r_ = 0.1, q_ = 1;
};

TEST(Starvation, NoRowWaitsBeyondItsBoundAndNothingIsLost) {
  int steps = 0;
  for (uint32_t seed = 1; seed <= 400 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Load load(seed);
    load.Run();
    steps += load.steps();
  }
  EXPECT_GT(steps, 20000);
}

}  // namespace
}  // namespace tokenrouter
