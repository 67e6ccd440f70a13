#include "services/scheduler/core/gateway_sessions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/routing/wire_types.h"
#include "libs/tokens/protocol_version.h"
#include "libs/tokens/stop_rules.h"
#include "services/scheduler/request/grant_state.h"

namespace tokenrouter {
namespace {

TokenHistory HistoryOf(const wire::Submit& submit) {
  const int prompt = submit.spec().prompt_length();
  TokenHistory history(std::vector<TokenId>(submit.ids().begin(), submit.ids().begin() + prompt));
  for (int i = prompt; i < submit.ids_size(); ++i) {
    history.Commit(submit.ids(i), CheckedAuthor(submit.authors()[i - prompt]));
  }
  return history;
}

}  // namespace

void GatewaySessions::OnHello(StreamId stream, const wire::GatewayHello& hello) {
  if (hello.protocol_version() != kProtocolVersion) {
    state_->output->CloseGateway(
        stream, absl::FailedPreconditionError(absl::StrCat(
                    "gateway ", hello.gateway_id(), " speaks protocol version ",
                    hello.protocol_version(), ", this scheduler speaks ", kProtocolVersion)));
    return;
  }
  if (const absl::Status judged = JudgeTokenizer(hello.tokenizer_fingerprint(), hello.pair());
      !judged.ok()) {
    state_->output->CloseGateway(stream, judged);
    return;
  }
  // The same gateway reconnected, so its old stream is dead even if its end was not noticed yet.
  for (const auto& [other, session] : sessions_) {
    if (hello.gateway_id().empty() || session->gateway_id != hello.gateway_id()) continue;
    const StreamId old = other;
    OnGone(old);
    state_->output->CloseGateway(old, absl::AbortedError("replaced by a newer stream"));
    break;
  }
  auto session = std::make_unique<Session>();
  session->gateway_id = hello.gateway_id();
  session->pair = hello.pair();
  session->tokenizer_fingerprint = hello.tokenizer_fingerprint();
  sessions_.emplace(stream, std::move(session));
  wire::Welcome* const welcome = state_->outbox.gateways.Get(stream).mutable_welcome();
  welcome->set_protocol_version(kProtocolVersion);
  if (hello.pair().empty() && state_->directory.pairs() > 0) {
    *welcome->mutable_pair() = Status(0);
  } else if (const auto pair = state_->directory.FindPair(hello.pair())) {
    *welcome->mutable_pair() = Status(*pair);
  } else if (!hello.pair().empty()) {
    welcome->mutable_pair()->set_pair(hello.pair());  // No worker has attached yet.
  }
}

absl::Status GatewaySessions::JudgeTokenizer(const std::string& fingerprint,
                                             const std::string& pair) const {
  const auto index = state_->directory.FindPair(pair);
  if (fingerprint.empty() || !index) return absl::OkStatus();
  for (const auto& pool : state_->directory.pair(*index).workers) {
    if (pool.empty()) continue;
    const wire::WorkerHello& worker = state_->directory.Find(*pool.begin())->hello;
    const std::string& theirs = worker.tokenizer_fingerprint();
    if (theirs.empty() || theirs == fingerprint) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "the gateway has tokenizer ", fingerprint, " but pair ", pair, " runs with ", theirs,
        " of worker ", worker.worker_id(), "; gateway and models need the same tokenizer"));
  }
  return absl::OkStatus();
}

void GatewaySessions::OnFrame(StreamId stream, const wire::GatewayFrame& frame) {
  const auto found = sessions_.find(stream);
  if (found == sessions_.end()) return;
  Session* const session = found->second.get();
  for (const wire::Submit& submit : frame.submits()) OnSubmit(stream, session, submit);
  for (const wire::Ack& ack : frame.acks()) {
    RequestMachine* const request = Find(*session, ack.handle());
    if (request == nullptr) continue;
    ClientState& client = request->mutable_service().client;
    if (client.Acknowledge(ack.position(), request->history().committed(), state_->now)) {
      rows_->OnAcknowledged(request);
    }
  }
  for (const wire::Cancel& cancel : frame.cancels()) {
    RequestMachine* const request = Find(*session, cancel.handle());
    if (request == nullptr) continue;
    wire::Finish finish;
    finish.set_position(request->history().committed());
    finish.set_reason(api::FINISH_REASON_CANCELLED);
    finisher_->Finish(request, std::move(finish));
  }
  for (const wire::GatewayFinish& end : frame.finishes()) {
    RequestMachine* const request = Find(*session, end.handle());
    if (request != nullptr) finisher_->Finish(request, end.finish());
  }
}

RequestMachine* GatewaySessions::Find(const Session& session, uint64_t handle) {
  const auto found = session.requests.find(handle);
  // A request that ended a moment ago is the usual case, not an error.
  return found == session.requests.end() ? nullptr : state_->requests.Find(found->second);
}

std::optional<Refusal> GatewaySessions::Judge(const Session& session,
                                              const wire::Submit& submit) const {
  const wire::GenerationSpec& spec = submit.spec();
  if (session.requests.contains(submit.handle()) ||
      state_->requests.Find(spec.request_id(), spec.choice()) != nullptr) {
    return Refusal{RejectReason::kDuplicate, absl::StatusCode::kAlreadyExists,
                   absl::StrCat("request ", spec.request_id(), " choice ", spec.choice(),
                                " (handle ", submit.handle(), ") is in flight already")};
  }
  if (spec.pair().empty() || !state_->directory.MayKnow(spec.pair())) {
    return Refusal{
        RejectReason::kInvalid, absl::StatusCode::kInvalidArgument,
        absl::StrCat("request ", spec.request_id(), ": unknown pair '", spec.pair(), "'")};
  }
  const auto pair = state_->directory.FindPair(spec.pair());
  // Whoever writes first, there is no room.
  const bool must_wait = !pair || (!placement_->HasCapacity(*pair, Role::kSmall) &&
                                   !placement_->HasCapacity(*pair, Role::kLarge));
  if (auto refusal =
          JudgeLoad(LoadOf(submit.spec(), must_wait), submit.resumed(), state_->options)) {
    return refusal;
  }
  return JudgeSubmit(submit, pair ? state_->directory.pair(*pair) : Pair());
}

AdmissionLoad GatewaySessions::LoadOf(const wire::GenerationSpec& spec, bool must_wait) const {
  const absl::Time settled = state_->term_since + state_->options.settling;
  return {.live = state_->requests.size(),
          .newcomers = state_->newcomers.total,
          .must_wait = must_wait,
          .reserved_ids = state_->requests.reserved_ids(),
          .wanted_ids = ReservedIds(spec),
          .settles_in = std::max(absl::ZeroDuration(), settled - state_->now)};
}

std::optional<Refusal> GatewaySessions::FindBeginning(const wire::Submit& submit,
                                                      ModeRule::Beginning* beginning) const {
  auto opening = opening_(submit.spec().routing());
  if (!opening.ok()) {
    return Refusal{RejectReason::kInvalid, opening.status().code(),
                   std::string(opening.status().message())};
  }
  if (submit.has_grant()) {
    beginning->grant = *ReadGrantState(submit.grant());  // JudgeSubmit has read it.
  } else {
    *beginning = mode_->AtAdmission(submit, *std::move(opening));
  }
  const auto pair = state_->directory.FindPair(submit.spec().pair());
  const bool must_wait = !pair || !placement_->HasCapacity(*pair, beginning->grant.role);
  return JudgeLoad(LoadOf(submit.spec(), must_wait), submit.resumed(), state_->options);
}

void GatewaySessions::OnSubmit(StreamId stream, Session* session, const wire::Submit& submit) {
  ModeRule::Beginning beginning;
  std::optional<Refusal> refusal = Judge(*session, submit);
  if (!refusal) refusal = FindBeginning(submit, &beginning);
  if (refusal) {
    FillRejection(state_, stream, submit.handle(), submit.spec().request_id(), *refusal);
    return;
  }
  if (beginning.asked_for_probe) mode_->Admitted(state_->directory.PairOf(submit.spec().pair()));
  Start(stream, session, submit, std::move(beginning.grant));
}

void GatewaySessions::Start(StreamId stream, Session* session, const wire::Submit& submit,
                            RequestGrant grant) {
  const wire::GenerationSpec& spec = submit.spec();
  RequestMachine::Origin origin;
  origin.key = state_->requests.next_key();
  origin.gateway = stream;
  origin.handle = submit.handle();
  origin.pair = state_->directory.PairOf(spec.pair());
  origin.submitted_at = state_->now;
  const Position window =
      spec.string_stops() ? state_->options.string_stop_credit : state_->options.credit;
  RequestMachine* const request = state_->requests.Add(std::make_unique<RequestMachine>(
      origin, spec, HistoryOf(submit), submit.state(), std::move(grant), window));
  session->requests.emplace(submit.handle(), origin.key);
  if (request->grant().large_alone) ++state_->counters.large_alone_requests;
  wire::Finish finish;
  if (submit.resumed() && FinishedAlready(*request, &finish)) {
    finisher_->Finish(request, std::move(finish));
    return;
  }
  if (spec.deadline_ms() > 0) {
    state_->timers.Arm(
        {state_->now + absl::Milliseconds(spec.deadline_ms()), origin.key, Timer::Kind::kDeadline});
  }
  placement_->DispatchGrant(request);
  grants_->Begin(origin.key);
}

bool GatewaySessions::FinishedAlready(const RequestMachine& request, wire::Finish* finish) const {
  const TokenHistory& history = request.history();
  if (history.generated() == 0) return false;
  absl::StatusOr<StopRules> rules = FromWire(request.spec().stop());
  if (!rules.ok()) return false;  // The worker says why.
  AddEosIds(state_->directory.pair(request.origin().pair).stop_ids, &*rules);
  const FinishReason reason = CheckStop(*rules, history.ids().back(), history.generated());
  if (reason == FinishReason::kNone) return false;
  finish->set_position(history.committed());
  finish->set_reason(ToWire(reason));
  return true;
}

void GatewaySessions::OnGone(StreamId stream) {
  const auto found = sessions_.find(stream);
  if (found == sessions_.end()) return;
  std::vector<uint64_t> keys;
  for (const auto& [handle, key] : found->second->requests) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  for (const uint64_t key : keys) finisher_->Abandon(state_->requests.Find(key));
  sessions_.erase(stream);
  state_->outbox.gateways.Forget(stream);
}

void GatewaySessions::Forget(const RequestMachine& request) {
  const auto found = sessions_.find(request.origin().gateway);
  if (found != sessions_.end()) found->second->requests.erase(request.origin().handle);
}

void GatewaySessions::CloseAll(const absl::Status& why) {
  while (!sessions_.empty()) {
    const StreamId stream = sessions_.begin()->first;
    OnGone(stream);
    state_->output->CloseGateway(stream, why);
  }
}

wire::PairStatus GatewaySessions::Status(int index) const {
  const Pair& pair = state_->directory.pair(index);
  wire::PairStatus status;
  status.set_pair(pair.name);
  status.set_small_workers(static_cast<int>(pair.workers[Index(Role::kSmall)].size()));
  status.set_large_workers(static_cast<int>(pair.workers[Index(Role::kLarge)].size()));
  status.set_context_limit(pair.context_limit);
  status.set_usable_ids(pair.usable_ids);
  status.set_small_model(pair.model[Index(Role::kSmall)]);
  status.set_large_model(pair.model[Index(Role::kLarge)]);
  status.set_running(state_->requests.live(index) - state_->newcomers.of(index));
  status.set_queued(state_->newcomers.of(index));
  return status;
}

void GatewaySessions::PublishPair(int index) {
  const std::string& name = state_->directory.pair(index).name;
  std::vector<std::pair<StreamId, absl::Status>> misfits;
  for (const auto& [stream, session] : sessions_) {
    if (!session->pair.empty() && session->pair != name) continue;
    *state_->outbox.gateways.Get(stream).mutable_pair() = Status(index);
    absl::Status judged = JudgeTokenizer(session->tokenizer_fingerprint, session->pair);
    if (!judged.ok()) misfits.emplace_back(stream, std::move(judged));
  }
  for (const auto& [stream, why] : misfits) {
    OnGone(stream);
    state_->output->CloseGateway(stream, why);
  }
}

}  // namespace tokenrouter
