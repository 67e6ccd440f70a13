// The part of World that checks the outcome.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libs/routing/wire_types.h"
#include "tests/simulation/reference_run.h"
#include "tests/simulation/world.h"

namespace tokenrouter::simulation {

std::string World::CheckAnswers() const {
  for (const auto& gateway : gateways_) {
    for (const auto& [handle, record] : gateway->records()) {
      const std::string failure = CheckAnswer(record);
      if (!failure.empty()) return failure;
    }
  }
  return "";
}

std::string World::CheckAnswer(const ClientRecord& record) const {
  const wire::GenerationSpec& spec = record.plan.spec;
  const std::string name = absl::StrCat(spec.request_id(), " (", spec.routing().algorithm(), ") ");
  if (!record.ended) {
    return absl::StrCat(name, "did not end; it has ", record.ids.size(), " tokens");
  }
  if (!record.error.ok()) {
    const bool declared = record.error.code() == absl::StatusCode::kUnavailable ||
                          record.error.code() == absl::StatusCode::kResourceExhausted;
    if (strict_ || !declared) return absl::StrCat(name, "failed: ", record.error.ToString());
  }
  const bool small_only = options_.large_pool_gone == LargePoolGone::kSmallOnly && !workers_stay_;
  if (record.degraded && !classes_differ_ && !small_only) {
    return absl::StrCat(name, "is marked degraded");
  }
  // There is no reference answer once the small model has taken over.
  if (record.degraded && small_only) return "";
  const std::string marks = CheckMarks(record);
  if (!marks.empty()) return absl::StrCat(name, marks);
  const std::string& algorithm = spec.routing().algorithm();
  const bool routable = algorithm != "never" && algorithm != "always";
  const bool free = spec.service_mode() == api::SERVICE_MODE_UNSPECIFIED;
  return mode_varies_ && routable && free ? CheckFlipped(record) : CheckIds(record);
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
  const bool never_touched = spec.service_mode() == api::SERVICE_MODE_ROUTED || !mode_varies_ ||
                             spec.routing().algorithm() == "never" ||
                             spec.routing().algorithm() == "always";
  return never_touched && record.large_alone > 0 ? "is marked large-only" : "";
}

// Which model wrote a token depends on when the mode changed; whether it is right does not.
std::string World::CheckFlipped(const ClientRecord& record) const {
  const wire::GenerationSpec& spec = record.plan.spec;
  const std::string name = absl::StrCat(spec.request_id(), " (", spec.routing().algorithm(), ") ");
  // Drafting and verification yield what the large model chooses, whichever model writes in
  // between.
  if (spec.routing().algorithm() == "speculative") return CheckIds(record);
  std::string failure =
      Rescore(spec, record.plan.prompt, record.ids, record.authors, models_[0], models_[1]);
  if (!failure.empty()) return absl::StrCat(name, failure);
  if (record.cancelled || record.stopped || !record.error.ok()) return "";
  const auto generated = static_cast<int32_t>(record.ids.size());
  const StopRules rules = RulesOf(spec, models_[0]);
  const bool ends = generated > 0 && record.finish.reason() ==
                                         ToWire(CheckStop(rules, record.ids.back(), generated));
  if (!ends || record.finish.position() != spec.prompt_length() + generated) {
    return absl::StrCat(name, "ended with ", record.finish.ShortDebugString());
  }
  return "";
}

std::string World::CheckIds(const ClientRecord& record) const {
  const wire::GenerationSpec& spec = record.plan.spec;
  const std::string name = absl::StrCat(spec.request_id(), " (", spec.routing().algorithm(), ") ");
  wire::GenerationSpec as_served = spec;
  if (spec.service_mode() == api::SERVICE_MODE_LARGE_ALONE) {
    as_served.mutable_routing()->Clear();
    as_served.mutable_routing()->set_algorithm("always");
  }
  const ReferenceAnswer expected =
      RunReference(as_served, record.plan.prompt, models_[0], models_[1]);
  if (record.cancelled || record.stopped || !record.error.ok()) {
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

std::string World::CheckMemory() const {
  for (const auto& worker : workers_) {
    if (worker->blocks_in_use() != 0 || worker->sequences() != 0) {
      return absl::StrCat("memory is still in use: ", worker->Describe());
    }
  }
  if (scheduler_->running() && scheduler_->core().requests().size() != 0) {
    return absl::StrCat("the scheduler still has ", scheduler_->core().requests().size(),
                        " requests");
  }
  return "";
}

std::string World::CheckDevice() const {
  if (!shared_device_ || faults_planned_ > 0 || scheduler_->expired_leases() > 0) return "";
  if (device_.worst <= 1) return "";
  return absl::StrCat(device_.worst, " workers computed on one device at once");
}

}  // namespace tokenrouter::simulation
