// Generation is one request between a front end and the scheduler: it submits, turns events into
// text, acknowledges what the client has been given, and cancels when it is dropped before its end.
// Ownership: the environment's parts must outlive it. Threads: Poll, Acknowledge and the destructor
// belong to one caller at a time; `wake` is called from the port's thread whenever Poll may have
// something new, never after the destructor has returned unless it was already running, so it must
// own what it touches. Memory: bounded by the scheduler's credit, since no text is acknowledged
// before the client has it, and by the longest stop string, which may hold text back.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libs/timing/clock.h"
#include "services/gateway/generation/request_intake.h"
#include "services/gateway/generation/text_stream.h"
#include "services/gateway/link/gateway_metrics.h"
#include "services/gateway/link/scheduler_port.h"

namespace tokenrouter {

struct GenerationEnvironment {
  SchedulerPort* port = nullptr;
  const TextModel* model = nullptr;
  GatewayMetrics* metrics = nullptr;
  const Clock* clock = nullptr;
};

class Generation {
 public:
  struct Progress {
    std::vector<TextPiece> pieces;
    bool ended = false;  // Nothing follows.
    absl::Status error;  // With ended: why it failed; OK: see reason().
  };

  // UNAVAILABLE when the port is stopping.
  static absl::StatusOr<std::unique_ptr<Generation>> Start(TokenRequest request,
                                                           const GenerationEnvironment& environment,
                                                           std::function<void()> wake);
  ~Generation();
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Returns what happened since the last call.
  Progress Poll();
  // Tells the scheduler that the client has received everything that Poll returned so far.
  void Acknowledge();

  FinishReason reason() const { return text_.reason(); }
  const UsageCounts& usage() const { return text_.usage(); }
  const std::string& request_id() const { return request_id_; }

 private:
  class Mailbox;
  Generation(const TokenRequest& request, StopMatcher stops,
             const GenerationEnvironment& environment, std::shared_ptr<Mailbox> mailbox);

  void TakeEvent(const LinkEvent& event, Progress* progress);
  void TakeEnd(Progress* progress);
  void ObserveTokens(int32_t count);
  void LogEnd(const char* outcome) const;

  const GenerationEnvironment environment_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::string request_id_;
  const uint32_t choice_;
  const std::string algorithm_;
  const absl::Time started_;
  absl::Time last_token_;
  absl::Duration first_token_ = absl::ZeroDuration();
  TextStream text_;
  uint64_t handle_ = 0;
  int32_t acknowledged_;
  bool ended_ = false;
};

}  // namespace tokenrouter
