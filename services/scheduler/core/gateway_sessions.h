// GatewaySessions is the gateways' side of the core: hellos, submits, acknowledgements, cancels,
// stop strings, and the end of requests whose gateway is gone.
// Threads: lives on the scheduler's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "services/scheduler/core/grant_watch.h"
#include "services/scheduler/core/mode_rule.h"
#include "services/scheduler/core/row_report_handler.h"
#include "services/scheduler/placement/admission.h"
#include "services/scheduler/placement/placement.h"
#include "services/scheduler/placement/request_finisher.h"
#include "services/scheduler/state/core_state.h"

namespace tokenrouter {

class GatewaySessions {
 public:
  // All must outlive this object.
  GatewaySessions(CoreState* state, RequestFinisher* finisher, Placement* placement,
                  RowReportHandler* rows, const ModeRule* mode, GrantWatch* grants,
                  InitialGrantRule opening)
      : state_(state),
        finisher_(finisher),
        placement_(placement),
        rows_(rows),
        mode_(mode),
        grants_(grants),
        opening_(std::move(opening)) {}

  // REQUIRES: frame.has_hello() iff the stream has no session; SchedulerCore refuses all else.
  bool Known(StreamId stream) const { return sessions_.contains(stream); }
  void OnHello(StreamId stream, const wire::GatewayHello& hello);
  void OnFrame(StreamId stream, const wire::GatewayFrame& frame);
  void OnGone(StreamId stream);
  // Ends all sessions and their streams.
  void CloseAll(const absl::Status& why);
  // Sends the pair's status to its gateways. The stream of one that has another tokenizer than the
  // workers of now is ended: its ids mean something else to them.
  void PublishPair(int pair);
  wire::PairStatus Status(int pair) const;

  // Forgets a request that ends.
  void Forget(const RequestMachine& request);
  int size() const { return static_cast<int>(sessions_.size()); }

 private:
  struct Session {
    std::string gateway_id;
    std::string pair;
    std::string tokenizer_fingerprint;
    absl::flat_hash_map<uint64_t, uint64_t> requests;  // Key by handle.
  };

  void OnSubmit(StreamId stream, Session* session, const wire::Submit& submit);
  // What costs only look-ups first: it must stay cheap to refuse what is too much.
  std::optional<Refusal> Judge(const Session& session, const wire::Submit& submit) const;
  // How an admitted request would begin, or why it may not.
  std::optional<Refusal> FindBeginning(const wire::Submit& submit,
                                       ModeRule::Beginning* beginning) const;
  AdmissionLoad LoadOf(const wire::GenerationSpec& spec, bool must_wait) const;
  // OK where either does not say which tokenizer it has, and while the pair has no worker.
  absl::Status JudgeTokenizer(const std::string& fingerprint, const std::string& pair) const;
  void Start(StreamId stream, Session* session, const wire::Submit& submit, RequestGrant grant);
  bool FinishedAlready(const RequestMachine& request, wire::Finish* finish) const;
  RequestMachine* Find(const Session& session, uint64_t handle);

  CoreState* const state_;
  RequestFinisher* const finisher_;
  Placement* const placement_;
  RowReportHandler* const rows_;
  const ModeRule* const mode_;
  GrantWatch* const grants_;
  const InitialGrantRule opening_;
  absl::btree_map<StreamId, std::unique_ptr<Session>> sessions_;
};

}  // namespace tokenrouter
