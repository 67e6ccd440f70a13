// The part of World that judges what clients got: each request ends once, with the tokens of a run
// without faults or, for a declared reason, with the first of them.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libs/routing/wire_types.h"
#include "services/gateway/errors/api_error.h"
#include "tests/simulation/reference_run.h"
#include "tests/simulation/world.h"

namespace tokenrouter::simulation {
namespace {

constexpr absl::Duration kLongestAnswer = absl::Minutes(5);
// What a process that stands still, and the end of a stream that no one notices, may add.
constexpr absl::Duration kLongestPause = absl::Seconds(40);

std::string NameOf(const ClientRecord& record) {
  const wire::GenerationSpec& spec = record.plan.spec;
  return absl::StrCat(spec.request_id(), " (", spec.routing().algorithm(), ") ");
}

bool IsRoutable(const wire::GenerationSpec& spec) {
  return spec.routing().algorithm() != "never" && spec.routing().algorithm() != "always";
}

// Ended before its natural end, by its client or by a fault.
bool IsCutShort(const ClientRecord& record) {
  return record.cancelled || record.stopped || record.lost || !record.error.ok() ||
         record.finish.reason() == api::FINISH_REASON_ERROR;
}

}  // namespace

std::string World::CheckAnswers() const {
  for (const auto& gateway : deployment_.gateways) {
    for (const auto& [handle, record] : gateway->records()) {
      const std::string failure = CheckAnswer(record);
      if (!failure.empty()) return failure;
    }
  }
  return "";
}

std::string World::CheckAnswer(const ClientRecord& record) const {
  const wire::GenerationSpec& spec = record.plan.spec;
  const std::string name = NameOf(record);
  if (!record.ended) {
    return absl::StrCat(name, "did not end; it has ", record.ids.size(), " tokens");
  }
  if (const std::string refusal = CheckRefusal(record); !refusal.empty()) return name + refusal;
  const bool small_only = scenario_.options.large_pool_gone == LargePoolGone::kSmallOnly;
  if (record.degraded && !scenario_.classes_differ && !small_only) {
    return absl::StrCat(name, "is marked degraded");
  }
  // There is no reference answer once the small model has taken over.
  if (record.degraded && small_only) return "";
  if (const std::string late = CheckTime(record); !late.empty()) return name + late;
  const std::string marks = CheckMarks(record);
  if (!marks.empty()) return absl::StrCat(name, marks);
  const bool free = spec.service_mode() == api::SERVICE_MODE_UNSPECIFIED;
  return scenario_.mode_varies && IsRoutable(spec) && free ? CheckFlipped(record)
                                                           : CheckIds(record);
}

// Whether the request may have ended with this error.
std::string World::CheckRefusal(const ClientRecord& record) const {
  if (record.finish.reason() == api::FINISH_REASON_ERROR) {
    for (const auto& worker : deployment_.workers) {
      if (worker->troubles().failed.contains(record.plan.spec.request_id())) return "";
    }
    return absl::StrCat("ended with an error, but no step of it failed: ",
                        record.finish.ShortDebugString());
  }
  if (record.error.ok()) return "";
  const std::string reason = ToApiError(record.error).code;
  if (reason == "duplicate") {
    return record.attempt > 0 ? "" : "is called a duplicate, but was submitted once";
  }
  if (reason == "crash_suspect") {
    return MayBeSuspected(record) ? "" : "is suspected, but too few workers were lost";
  }
  if (reason == "reopen_limit") {
    return Disturbances(record) > scenario_.options.max_reopens
               ? ""
               : "was opened too often, though few workers were lost";
  }
  if (reason == "deadline") {
    const absl::Duration took = record.ended_at - record.submitted_at;
    const int64_t deadline = record.plan.spec.deadline_ms();
    return deadline > 0 && took >= absl::Milliseconds(deadline)
               ? ""
               : absl::StrCat("missed its deadline of ", deadline, " ms after ",
                              absl::FormatDuration(took));
  }
  // Overload, and waits that are over; large_pool_gone and no_small_worker are also judged when
  // they are decided, against the workers that served then.
  static const std::set<std::string> kLenient = {
      "queue_full",      "max_requests",    "queue_timeout", "no_scheduler",
      "no_small_worker", "large_pool_gone", "client_slow"};
  if (!scenario_.strict && kLenient.contains(reason)) return "";
  if (reason == "large_pool_gone" && scenario_.options.large_pool_gone == LargePoolGone::kFail) {
    return "";
  }
  return absl::StrCat("failed: ", record.error.ToString());
}

// Nothing keeps a request for long, whatever happens to its workers; a deadline ends it sooner.
std::string World::CheckTime(const ClientRecord& record) const {
  if (record.plan.pauses_after >= 0 || record.lost) return "";
  const absl::Duration took = record.ended_at - record.submitted_at;
  const int64_t deadline_ms = record.plan.spec.deadline_ms();
  const absl::Duration most =
      deadline_ms > 0 ? absl::Milliseconds(deadline_ms) + kLongestPause : kLongestAnswer;
  return took <= most ? "" : absl::StrCat("took ", absl::FormatDuration(took));
}

int World::Disturbances(const ClientRecord& record) const {
  int disturbances = 0;
  for (const auto& worker : deployment_.workers) {
    if (worker->options().pair != record.plan.spec.pair()) continue;
    disturbances += worker->troubles().disturbances;
  }
  return disturbances;
}

// A request is suspected once it ran on so many workers that were lost in a row. One that crashes
// its engine takes each other one with it at most once.
bool World::MayBeSuspected(const ClientRecord& record) const {
  if (record.plan.poison) return true;
  int losses = Disturbances(record);
  for (const ClientScenario& client : scenario_.clients) losses += client.plan.poison ? 1 : 0;
  return losses >= scenario_.options.max_worker_losses;
}

std::string World::CheckMarks(const ClientRecord& record) const {
  const wire::GenerationSpec& spec = record.plan.spec;
  const auto ids = static_cast<int32_t>(record.ids.size());
  if (spec.service_mode() == api::SERVICE_MODE_LARGE_ALONE) {
    if (record.large_alone != ids) return "is not marked large-only throughout";
    return record.authors.find(static_cast<char>(Author::kSmall)) == std::string::npos
               ? ""
               : "has tokens of the small model";
  }
  const bool never_touched = spec.service_mode() == api::SERVICE_MODE_ROUTED ||
                             !scenario_.mode_varies || !IsRoutable(spec);
  return never_touched && record.large_alone > 0 ? "is marked large-only" : "";
}

// Which model wrote a token depends on when the mode changed; whether it is right does not.
std::string World::CheckFlipped(const ClientRecord& record) const {
  const wire::GenerationSpec& spec = record.plan.spec;
  const std::string name = NameOf(record);
  // Drafting and verification yield what the large model chooses, whichever model writes in
  // between.
  if (spec.routing().algorithm() == "speculative") return CheckIds(record);
  const auto& models = scenario_.PairOf(spec.pair()).models;
  std::string failure =
      Rescore(spec, record.plan.prompt, record.ids, record.authors, models[0], models[1]);
  if (!failure.empty()) return absl::StrCat(name, failure);
  if (IsCutShort(record)) return "";
  const auto generated = static_cast<int32_t>(record.ids.size());
  const StopRules rules = RulesOf(spec, models[0]);
  const bool ends = generated > 0 && record.finish.reason() ==
                                         ToWire(CheckStop(rules, record.ids.back(), generated));
  if (!ends || record.finish.position() != spec.prompt_length() + generated) {
    return absl::StrCat(name, "ended with ", record.finish.ShortDebugString());
  }
  return "";
}

std::string World::CheckIds(const ClientRecord& record) const {
  const wire::GenerationSpec& spec = record.plan.spec;
  const std::string name = NameOf(record);
  wire::GenerationSpec as_served = spec;
  if (spec.service_mode() == api::SERVICE_MODE_LARGE_ALONE) {
    as_served.mutable_routing()->Clear();
    as_served.mutable_routing()->set_algorithm("always");
  }
  const auto& models = scenario_.PairOf(spec.pair()).models;
  const ReferenceAnswer expected =
      RunReference(as_served, record.plan.prompt, models[0], models[1]);
  if (IsCutShort(record)) {
    const bool prefix = record.ids.size() <= expected.ids.size() &&
                        std::equal(record.ids.begin(), record.ids.end(), expected.ids.begin());
    return prefix ? "" : absl::StrCat(name, "is not a prefix of the answer without faults");
  }
  if (record.ids != expected.ids) {
    return absl::StrCat(name, "got ", absl::StrJoin(record.ids, ","), " instead of ",
                        absl::StrJoin(expected.ids, ","));
  }
  const auto end = static_cast<Position>(spec.prompt_length() + record.ids.size());
  if (record.finish.reason() != expected.reason || record.finish.position() != end) {
    return absl::StrCat(name, "ended with ", record.finish.ShortDebugString());
  }
  return "";
}

}  // namespace tokenrouter::simulation
