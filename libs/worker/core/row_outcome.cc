#include "libs/worker/core/row_outcome.h"

#include <algorithm>
#include <string>
#include <utility>

#include "libs/routing/wire_records.h"
#include "libs/routing/wire_types.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

wire::RowReport EmptyReport(const SequenceState& sequence) {
  wire::RowReport report;
  report.set_request(sequence.request);
  report.set_epoch(sequence.epoch);
  report.set_base_position(sequence.track.committed());
  return report;
}

class RowResolver {
 public:
  RowResolver(const SequenceLimits& limits, SequenceState* sequence)
      : limits_(limits), sequence_(*sequence) {
    outcome_.report = EmptyReport(sequence_);
    outcome_.valid_kv = sequence_.track.size();
  }

  RowOutcome Resolve(std::span<const Choice> choices) {
    TR_CHECK(sequence_.grant.has_value());
    TR_CHECK(static_cast<int32_t>(choices.size()) == sequence_.choices())
        << choices.size() << " choices for verify " << sequence_.grant->verify;
    const Choice* proposal = &choices[0];
    if (sequence_.grant->verify > 0) proposal = &choices[Verify(choices)];
    if (!outcome_.finished) Write(*proposal);
    Report();
    return std::move(outcome_);
  }

 private:
  // Receive: keeps what the algorithm keeps of the tail. Returns the index of the proposal.
  int32_t Verify(std::span<const Choice> choices) {
    const std::span<const TokenId> tail =
        sequence_.track.tail().last(static_cast<size_t>(sequence_.grant->verify));
    const auto before = static_cast<int32_t>(sequence_.track.tail().size() - tail.size());
    const int32_t keep = sequence_.algorithm->Receive(
        {.role = limits_.role, .tail = tail, .choices = choices}, &sequence_.state);
    TR_CHECK(keep >= 0 && keep <= sequence_.grant->verify)
        << sequence_.algorithm->name() << " keeps " << keep << " of " << sequence_.grant->verify;
    sequence_.grant->verify = 0;
    sequence_.track.CutTail(before + keep);
    outcome_.valid_kv = sequence_.track.size();
    for (int32_t i = 0; i < keep; ++i) {
      TokenRecord& record = sequence_.track.tail_record(before + i);
      record.entropy = choices[i].signals.entropy;  // The verifier's: the draft's are not sent.
      record.logprob = choices[i].logprob;
    }
    CommitTail();
    return keep;
  }

  void Write(const Choice& proposal) {
    ActiveGrant& grant = *sequence_.grant;
    if (grant.window.kind == Window::Kind::kOwnRule) return FollowRule(proposal);
    Append(proposal);
    CommitTail();
    if (outcome_.finished) return;
    const std::vector<TokenId>& delimiters = grant.window.delimiters;
    const bool over =
        (grant.window.kind == Window::Kind::kTokens && --grant.remaining <= 0) ||
        (grant.window.kind == Window::Kind::kDelimiter &&
         std::find(delimiters.begin(), delimiters.end(), proposal.id) != delimiters.end());
    if (over) HandOff(Other(limits_.role), Window::OwnRule(), /*verify=*/0);
  }

  void FollowRule(const Choice& proposal) {
    Decision decision =
        sequence_.algorithm->Route({.role = limits_.role,
                                    .position = sequence_.track.size(),
                                    .generated = sequence_.track.size() - sequence_.prompt_length,
                                    .proposal = proposal.id,
                                    .signals = proposal.signals,
                                    .tail = sequence_.track.tail(),
                                    .seed = sequence_.sampling.parameters.seed,
                                    .choice = sequence_.choice},
                                   &sequence_.state);
    TR_CHECK(decision.go || decision.proposal != Decision::Proposal::kDrop)
        << sequence_.algorithm->name() << " drops its proposal and stays";
    if (decision.proposal != Decision::Proposal::kDrop) Append(proposal);
    if (decision.proposal == Decision::Proposal::kCommit) CommitTail();
    if (outcome_.finished) return;
    // A tail cannot grow beyond the end of the request: the peer judges it as it is.
    if (!decision.go && decision.proposal == Decision::Proposal::kTentative && TailIsAtAnEnd()) {
      decision.go = true;
      decision.to = Other(limits_.role);
      decision.window = Window::OwnRule();
    }
    if (!decision.go) return;
    TR_CHECK(decision.to != limits_.role)
        << sequence_.algorithm->name() << " hands off to the " << RoleName(limits_.role)
        << " side, which has the grant; an algorithm that goes on there must stay";
    const Payload payload = sequence_.algorithm->Send(sequence_.track.tail(), sequence_.state);
    HandOff(decision.to, decision.window, payload.verify);
  }

  void Append(const Choice& choice) {
    sequence_.track.AppendTentative({.id = choice.id,
                                     .author = AuthorOf(limits_.role),
                                     .entropy = choice.signals.entropy,
                                     .logprob = choice.logprob});
  }

  // Commits the tail up to the first id that ends the request; what follows that id is dropped.
  void CommitTail() {
    WorkerHistory& track = sequence_.track;
    while (!track.tail().empty()) {
      const TokenRecord record = track.CommitFirst();
      ++outcome_.committed;
      AddRecord(record, &outcome_.report);
      const FinishReason reason = ReasonAt(record.id, track.committed());
      if (reason != FinishReason::kNone) return Finish(reason);
    }
  }

  FinishReason ReasonAt(TokenId id, Position length) const {
    const FinishReason reason = CheckStop(sequence_.stop, id, length - sequence_.prompt_length);
    if (reason != FinishReason::kNone) return reason;
    return length >= limits_.context_limit ? FinishReason::kLength : FinishReason::kNone;
  }

  bool TailIsAtAnEnd() const {
    return ReasonAt(sequence_.track.tail().back(), sequence_.track.size()) != FinishReason::kNone;
  }

  void Finish(FinishReason reason) {
    outcome_.finished = true;
    sequence_.track.CutTail(0);
    sequence_.grant.reset();
    sequence_.ended = true;
    outcome_.valid_kv = std::min(outcome_.valid_kv, sequence_.track.size());
    wire::Finish& finish = *outcome_.report.mutable_finish();
    finish.set_position(sequence_.track.committed());
    finish.set_reason(ToWire(reason));
  }

  void HandOff(Role to, const Window& window, int32_t verify) {
    TR_CHECK(verify >= 0 && verify <= static_cast<int32_t>(sequence_.track.tail().size()));
    outcome_.handed_off = true;
    sequence_.grant.reset();
    sequence_.released = false;
    wire::Handoff& handoff = *outcome_.report.mutable_handoff();
    handoff.set_to(ToWire(to));
    *handoff.mutable_window() = ToWire(window);
    handoff.set_verify(verify);
    const std::span<const TokenId> tail = sequence_.track.tail();
    outcome_.report.mutable_tail()->Add(tail.begin(), tail.end());
  }

  void Report() {
    const std::string_view state = sequence_.state.bytes();
    outcome_.report.set_state(std::string(state));
    outcome_.report.set_credit_blocked(sequence_.credit_blocked());
  }

  const SequenceLimits& limits_;
  SequenceState& sequence_;
  RowOutcome outcome_;
};

}  // namespace

RowOutcome ResolveRow(std::span<const Choice> choices, const SequenceLimits& limits,
                      SequenceState* sequence) {
  return RowResolver(limits, sequence).Resolve(choices);
}

wire::RowReport CreditBlockedReport(const SequenceState& sequence) {
  wire::RowReport report = EmptyReport(sequence);
  report.set_state(std::string(sequence.state.bytes()));
  report.set_credit_blocked(true);
  return report;
}

wire::RowReport FinishReport(const SequenceState& sequence, FinishReason reason,
                             const std::string& detail) {
  wire::RowReport report = EmptyReport(sequence);
  report.set_state(std::string(sequence.state.bytes()));
  wire::Finish& finish = *report.mutable_finish();
  finish.set_position(sequence.track.committed());
  finish.set_reason(ToWire(reason));
  finish.set_detail(detail);
  return report;
}

}  // namespace tokenrouter
