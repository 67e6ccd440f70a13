#include "libs/worker/core/sequence_state.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "libs/routing/algorithms/algorithm_registry.h"
#include "libs/routing/wire_types.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

std::span<const TokenId> IdsOf(const google::protobuf::RepeatedField<int32_t>& ids) {
  return {ids.data(), static_cast<size_t>(ids.size())};
}

absl::Duration BoundOf(int32_t ms) {
  return ms > 0 ? absl::Milliseconds(ms) : absl::InfiniteDuration();
}

absl::Status CheckIds(std::span<const TokenId> ids, const SequenceLimits& limits) {
  for (const TokenId id : ids) {
    if (id >= 0 && id < limits.usable_ids) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("token id ", id, " is outside [0, ", limits.usable_ids, ")"));
  }
  return absl::OkStatus();
}

// History lengths and the tail that an Open or Extend leads to.
absl::Status CheckLengths(int64_t size, int32_t tail, const SequenceState& sequence,
                          const SequenceLimits& limits) {
  if (size < 1 || size > limits.context_limit) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a history of ", size, " ids; allowed: 1 to the context limit of ", limits.context_limit));
  }
  if (tail < 0 || size - tail < sequence.prompt_length) {
    return absl::InvalidArgumentError(absl::StrCat("a tail of ", tail, " ids in a history of ",
                                                   size, " does not leave the prompt of ",
                                                   sequence.prompt_length));
  }
  return absl::OkStatus();
}

absl::Status ReadSpec(const wire::GenerationSpec& spec, const SequenceLimits& limits,
                      SequenceState* sequence) {
  TR_ASSIGN_OR_RETURN(sequence->algorithm, CreateAlgorithm(spec.routing().algorithm(),
                                                           ParametersFromWire(spec.routing())));
  TR_ASSIGN_OR_RETURN(sequence->sampling.parameters, FromWire(spec.sampling(), spec.choice()));
  TR_ASSIGN_OR_RETURN(sequence->stop, FromWire(spec.stop()));
  AddEosIds(limits.stop_ids, &sequence->stop);
  if (spec.prompt_length() < 1 || spec.prompt_length() > limits.context_limit) {
    return absl::InvalidArgumentError(absl::StrCat("prompt_length is ", spec.prompt_length(),
                                                   "; allowed: 1 to the context limit of ",
                                                   limits.context_limit));
  }
  sequence->prompt_length = spec.prompt_length();
  sequence->defer = {.one_wait = BoundOf(spec.max_defer_ms()),
                     .first_token = BoundOf(spec.ttft_slo_ms()),
                     .between_tokens = BoundOf(spec.token_slo_ms())};
  sequence->sampling.stop_ids = sequence->stop.stop_ids;
  // Masked while the number of the generated token, counted from 1, is below min_new_tokens.
  const int32_t masked = std::clamp(sequence->stop.min_new_tokens - 1, 0, limits.context_limit);
  sequence->sampling.mask_stop_ids_before = sequence->prompt_length + masked;
  return absl::OkStatus();
}

absl::Status SetState(const std::string& bytes, RequestState* state) {
  if (state->Assign(bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("an algorithm state of ", bytes.size(),
                                                 " bytes; allowed: at most ", kMaxRequestState));
}

absl::Status SetGrant(const wire::DecodeGrant& wire, SequenceState* sequence) {
  TR_ASSIGN_OR_RETURN(Window window, FromWire(wire.window()));
  const int32_t most =
      std::min<int32_t>(kMaxVerify, static_cast<int32_t>(sequence->track.tail().size()));
  if (wire.verify() < 0 || wire.verify() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("turn.verify is ", wire.verify(), "; allowed: [0, ", most, "]"));
  }
  sequence->grant =
      ActiveGrant{.window = window, .remaining = window.tokens, .verify = wire.verify()};
  return absl::OkStatus();
}

absl::Status ReadOpen(const wire::Open& open, const SequenceLimits& limits,
                      SequenceState* sequence) {
  TR_RETURN_IF_ERROR(ReadSpec(open.spec(), limits, sequence));
  TR_RETURN_IF_ERROR(CheckIds(IdsOf(open.ids()), limits));
  TR_RETURN_IF_ERROR(CheckLengths(open.ids_size(), open.tail(), *sequence, limits));
  TR_RETURN_IF_ERROR(SetState(open.state(), &sequence->state));
  if (open.has_grant()) TR_RETURN_IF_ERROR(SetGrant(open.grant(), sequence));
  return absl::OkStatus();
}

void StartOver(SequenceState* sequence) {
  sequence->grant.reset();
  sequence->released = false;
  sequence->ended = false;
}

}  // namespace

absl::Status ApplyOpen(const wire::Open& open, const SequenceLimits& limits,
                       SequenceState* sequence, Position* unchanged) {
  sequence->claimed = true;
  sequence->request = open.request();
  sequence->epoch = open.epoch();
  sequence->credit = open.credit();
  sequence->tenant = open.spec().tenant();
  sequence->cached_ids = 0;
  sequence->reported_cached = false;
  StartOver(sequence);
  const std::span<const TokenId> ids = IdsOf(open.ids());
  *unchanged = sequence->track.Replace(ids, std::clamp(open.tail(), 0, open.ids_size()),
                                       AuthorOf(Other(limits.role)));
  absl::Status status = ReadOpen(open, limits, sequence);
  if (!status.ok()) sequence->algorithm = nullptr;
  return status;
}

absl::Status ApplyExtend(const wire::Extend& extend, const SequenceLimits& limits,
                         SequenceState* sequence) {
  StartOver(sequence);
  const std::span<const TokenId> ids = IdsOf(extend.ids());
  const int32_t size = extend.base() + extend.ids_size();  // Both are lengths of what is in memory.
  sequence->track.Extend(extend.base(), ids, std::clamp(extend.tail(), 0, size),
                         AuthorOf(Other(limits.role)));
  if (sequence->algorithm == nullptr) {
    return absl::InvalidArgumentError("an Extend of a request whose Open was refused");
  }
  TR_RETURN_IF_ERROR(CheckIds(ids, limits));
  TR_RETURN_IF_ERROR(CheckLengths(size, extend.tail(), *sequence, limits));
  TR_RETURN_IF_ERROR(SetState(extend.state(), &sequence->state));
  if (extend.has_grant()) TR_RETURN_IF_ERROR(SetGrant(extend.grant(), sequence));
  return absl::OkStatus();
}

}  // namespace tokenrouter
