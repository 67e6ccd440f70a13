#include "services/scheduler/placement/large_kv_admission.h"

#include <algorithm>
#include <utility>

#include "services/scheduler/placement/request_finisher.h"

namespace tokenrouter {
namespace {

// The weight of the pair's mean against a request's own returns.
constexpr int64_t kPriorReturns = 4;
// The share of a new observation in the pair's mean.
constexpr double kMeanGain = 0.02;
// The estimate before a decode grant has come back to a large side of the pair.
constexpr absl::Duration kFirstAway = absl::Milliseconds(100);
// The shortest expected time until the next visit of a request that makes no progress.
constexpr absl::Duration kStandstill = absl::Seconds(1);

// Whether the request writes nothing until its client or a small worker makes it go on.
bool StandsStill(const RequestMachine& request) {
  return request.credit_blocked() || request.phase() == Phase::kHeld ||
         request.phase() == Phase::kWaiting;
}

}  // namespace

void LargeKvAdmission::Opened(const RequestMachine& request, AttachedWorker* worker,
                              bool with_grant) {
  const uint64_t key = request.origin().key;
  worker->kv.Open(key, request.history().size(), state_->now);
  if (with_grant) worker->kv.BeginVisit(key, state_->now);
}

void LargeKvAdmission::Visited(const RequestMachine& request, AttachedWorker* worker) {
  const absl::Duration away = worker->kv.BeginVisit(request.origin().key, state_->now);
  if (away > absl::ZeroDuration()) {
    absl::Duration& mean = mean_away_.try_emplace(worker->pair, away).first->second;
    mean += (away - mean) * kMeanGain;
  }
  Grew(request, worker);
}

void LargeKvAdmission::Grew(const RequestMachine& request, AttachedWorker* worker) {
  worker->kv.Resize(request.origin().key, request.history().size());
  const int64_t overdrawn = worker->kv.Overdrawn();
  if (overdrawn == 0 || state_->now < worker->look_for_growth_at) return;
  const auto victims =
      VictimsOn(*worker, {.need = EvictionNeed::kGrowth, .blocks = overdrawn}, /*only=*/0);
  if (victims) return Evict(*victims, EvictionNeed::kGrowth);
  worker->look_for_growth_at = state_->now + kLookAgain;
}

void LargeKvAdmission::Left(const RequestMachine& request) {
  AttachedWorker* const worker = state_->directory.Find(request.side(Role::kLarge).worker);
  if (worker == nullptr) return;
  worker->kv.Resize(request.origin().key, request.history().size());
  worker->kv.EndVisit(request.origin().key, state_->now);
}

absl::Duration LargeKvAdmission::UntilVisit(const RequestMachine& request,
                                            const KvLedger::Reservation& place) const {
  const absl::Duration pair_mean =
      mean_away_.try_emplace(request.origin().pair, kFirstAway).first->second;
  absl::Duration expected =
      (place.away + kPriorReturns * pair_mean) / (place.returns + kPriorReturns);
  if (StandsStill(request)) expected = std::max(expected, kStandstill);
  // A request that has been away for longer than usual is likely to stay away for as long again.
  return std::max(expected, state_->now - place.idle_since);
}

std::optional<LargeKvAdmission::Victims> LargeKvAdmission::VictimsOn(const AttachedWorker& worker,
                                                                     EvictionTerms terms,
                                                                     uint64_t only) const {
  std::vector<EvictionCandidate> candidates;
  std::vector<uint64_t> requests;
  const auto consider = [&](uint64_t key, const KvLedger::Reservation& place) {
    const RequestMachine& request = *state_->requests.Find(key);
    if (request.grant().role == Role::kLarge && request.phase() != Phase::kHeld) return;
    requests.push_back(key);
    candidates.push_back({.known = request.side(Role::kLarge).known,
                          .blocks = place.blocks,
                          .until_visit = UntilVisit(request, place),
                          .resident_for = state_->now - place.since,
                          .used = place.used});
  };
  if (only != 0) {
    const auto found = worker.kv.reservations().find(only);
    if (found != worker.kv.reservations().end()) consider(only, found->second);
  } else {
    for (const auto& [key, place] : worker.kv.reservations()) consider(key, place);
  }
  terms.residents = worker.kv.size();
  terms.id_ms = state_->ModelOf(worker.pair).seen().curve(Role::kLarge).coefficients().LateIdMs();
  terms.rebuild_share = state_->options.rebuild_share;
  Victims victims;
  for (const size_t index : ChooseVictims(candidates, terms)) {
    victims.requests.push_back(requests[index]);
    victims.ids += candidates[index].known;
  }
  if (victims.requests.empty()) return std::nullopt;
  return victims;
}

bool LargeKvAdmission::MakeFor(const RequestMachine& waiting, uint64_t only) {
  const bool overdue = state_->now - waiting.phase().since() >= state_->options.evict_overdue_after;
  const EvictionNeed need = overdue ? EvictionNeed::kOverdue : EvictionNeed::kPays;
  std::optional<Victims> best;
  const Pair& pair = state_->directory.pair(waiting.origin().pair);
  for (const StreamId stream : pair.workers[Index(Role::kLarge)]) {
    const AttachedWorker& worker = *state_->directory.Find(stream);
    // Capacity on a draining worker is useless, as is capacity where the request has yet to be
    // closed.
    if (worker.draining || worker.closing.contains(waiting.origin().key)) continue;
    const int64_t lacking = worker.kv.LackingFor(waiting.history().size());
    auto victims = VictimsOn(worker, {.need = need, .blocks = lacking}, only);
    if (victims && (!best || victims->ids < best->ids)) best = std::move(victims);
  }
  if (best) Evict(*best, need);
  return best.has_value();
}

void LargeKvAdmission::Evict(const Victims& victims, EvictionNeed need) {
  for (const uint64_t key : victims.requests) {
    CloseSide(state_, state_->requests.Find(key), Role::kLarge, ReopenCause::kEvicted);
    ++state_->counters.evicted[Index(need)];
  }
}

}  // namespace tokenrouter
