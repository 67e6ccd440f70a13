#include "services/scheduler/placement/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/routing/algorithm.h"
#include "libs/routing/wire_types.h"
#include "services/scheduler/request/grant_state.h"
#include "services/scheduler/request/request_registry.h"

namespace tokenrouter {
namespace {

Refusal Invalid(const wire::GenerationSpec& spec, const std::string& what) {
  return {RejectReason::kInvalid, absl::StatusCode::kInvalidArgument,
          absl::StrCat("request ", spec.request_id(), ": ", what)};
}

std::optional<Refusal> JudgeService(const wire::GenerationSpec& spec) {
  if (!api::ServiceMode_IsValid(spec.service_mode())) {
    return Invalid(spec, absl::StrCat("service_mode ", spec.service_mode(), "; allowed: 0 to ",
                                      api::ServiceMode_MAX));
  }
  const std::pair<const char*, int32_t> bounds[] = {{"max_defer_ms", spec.max_defer_ms()},
                                                    {"ttft_slo_ms", spec.ttft_slo_ms()},
                                                    {"token_slo_ms", spec.token_slo_ms()}};
  for (const auto& [name, value] : bounds) {
    if (value < 0) return Invalid(spec, absl::StrCat(name, " is ", value, "; allowed: at least 0"));
  }
  return std::nullopt;
}

std::optional<Refusal> JudgeGrant(const wire::Submit& submit) {
  if (!submit.has_grant()) return std::nullopt;
  if (!submit.resumed() || submit.authors().empty()) {
    return Invalid(submit.spec(), "a grant is sent with a resumed request that has tokens only");
  }
  const auto grant = ReadGrantState(submit.grant());
  if (grant.ok()) return std::nullopt;
  return Invalid(submit.spec(), absl::StrCat("grant: ", std::string(grant.status().message())));
}

}  // namespace

std::optional<Refusal> JudgeSubmit(const wire::Submit& submit, const Pair& pair) {
  const wire::GenerationSpec& spec = submit.spec();
  if (spec.request_id().empty()) return Invalid(spec, "request_id is empty");
  const int32_t prompt = spec.prompt_length();
  if (prompt < 1 || prompt > submit.ids_size()) {
    return Invalid(
        spec, absl::StrCat("prompt_length ", prompt, " is outside 1..", submit.ids_size(), " ids"));
  }
  if (static_cast<int>(submit.authors().size()) != submit.ids_size() - prompt) {
    return Invalid(spec, absl::StrCat(submit.authors().size(), " authors for ",
                                      submit.ids_size() - prompt, " ids after the prompt"));
  }
  for (const char author : submit.authors()) {
    if (!IsAuthor(author)) {
      return Invalid(spec, absl::StrCat("author ", static_cast<int>(author), "; allowed: 1, 2"));
    }
  }
  if (submit.state().size() > kMaxRequestState) {
    return Invalid(spec, absl::StrCat("state of ", submit.state().size(), " bytes; at most ",
                                      kMaxRequestState));
  }
  if (auto refusal = JudgeGrant(submit)) return refusal;
  if (const auto rules = FromWire(spec.stop()); !rules.ok()) {
    return Invalid(spec, std::string(rules.status().message()));
  }
  if (const auto sampling = FromWire(spec.sampling(), spec.choice()); !sampling.ok()) {
    return Invalid(spec, std::string(sampling.status().message()));
  }
  if (auto refusal = JudgeService(spec)) return refusal;
  const auto [low, high] = std::minmax_element(submit.ids().begin(), submit.ids().end());
  if (*low < 0 || (pair.usable_ids > 0 && *high >= pair.usable_ids)) {
    return Invalid(spec, absl::StrCat("token id ", *low < 0 ? *low : *high, " is outside 0..",
                                      pair.usable_ids - 1));
  }
  return JudgeContext(spec, pair);
}

std::optional<Refusal> JudgeContext(const wire::GenerationSpec& spec, const Pair& pair) {
  const int64_t wanted = ReservedIds(spec);
  if (pair.context_limit == 0 || wanted <= pair.context_limit) return std::nullopt;
  return Refusal{RejectReason::kContextLimit, absl::StatusCode::kInvalidArgument,
                 absl::StrCat("request ", spec.request_id(), ": prompt of ", spec.prompt_length(),
                              " tokens + max_new_tokens ", spec.stop().max_new_tokens(), " = ",
                              wanted, " exceeds the context limit ", pair.context_limit,
                              " of pair ", pair.name, pair.context_bound.empty() ? "" : " (",
                              pair.context_bound, pair.context_bound.empty() ? "" : ")")};
}

std::optional<Refusal> JudgeLoad(const AdmissionLoad& load, bool resumed,
                                 const CoreOptions& options) {
  if (resumed) return std::nullopt;
  if (load.settles_in > absl::ZeroDuration() &&
      load.live >= options.new_share_while_settling * options.max_requests) {
    return Refusal{
        RejectReason::kMaxRequests, absl::StatusCode::kResourceExhausted,
        absl::StrCat("this scheduler has just started: ", load.live, " of at most ",
                     options.max_requests,
                     " requests are in flight, and the rest is kept for those of before for ",
                     absl::FormatDuration(load.settles_in)),
        load.settles_in};
  }
  if (load.live >= options.max_requests) {
    return Refusal{
        RejectReason::kMaxRequests, absl::StatusCode::kResourceExhausted,
        absl::StrCat(load.live, " requests are in flight; the limit is ", options.max_requests)};
  }
  if (load.reserved_ids + load.wanted_ids > options.max_ids) {
    return Refusal{RejectReason::kMaxIds, absl::StatusCode::kResourceExhausted,
                   absl::StrCat("prompt + max_new_tokens are ", load.wanted_ids,
                                " ids, the requests in flight may grow to ", load.reserved_ids,
                                "; the limit is ", options.max_ids)};
  }
  if (load.must_wait && load.newcomers >= options.max_queued) {
    return Refusal{RejectReason::kQueueFull, absl::StatusCode::kResourceExhausted,
                   absl::StrCat(load.newcomers, " requests wait for a worker; the limit is ",
                                options.max_queued)};
  }
  return std::nullopt;
}

}  // namespace tokenrouter
