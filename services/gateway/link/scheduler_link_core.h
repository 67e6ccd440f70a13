// SchedulerLinkCore is the state of a gateway's one stream to the scheduler: which requests are
// live, what they committed, and what must be sent next. It is a pure state machine: frames and
// times go in, frames and events come out, so the shell (scheduler_link.h) and the simulator run
// the same rules.
//
// States of the link: down -> (OnConnected) greeting -> (Welcome) up -> (OnDisconnected) down. A
// request survives all of them: after each Welcome every live request is submitted again as of its
// last committed token. Ownership: owns all it is given. Threads: not thread-safe, one owner. Time:
// any monotonic origin. Errors: reach a request as LinkEvent::error, whose code the client
// receives. A chunk whose base_position is not the committed length, or whose handle is not live,
// is dropped and counted.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/tokens/protocol_version.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

struct LinkOptions {
  std::string scheduler;  // Its gRPC target: the shell dials it and error messages name it.
  std::string gateway_id;
  std::string pair;
  std::string tokenizer_fingerprint;
  // Acknowledgements are gathered for this long into one frame.
  absl::Duration ack_interval = absl::Milliseconds(2);
  // How long a new request, or one that has tokens, may wait for a link before it fails.
  absl::Duration submit_wait = absl::Seconds(5);
  absl::Duration resume_wait = absl::Seconds(60);
  // A scheduler that has not yet noticed the loss of the old stream calls a resubmit a duplicate.
  absl::Duration duplicate_retry = absl::Milliseconds(200);
  // Tokens of one request that the client has not been given yet. The scheduler's credit is far
  // below it; a peer that ignores credit loses the request, not this process its memory.
  int32_t max_unacknowledged = 4096;
};

// Something that happened to one request. With `finish` or an error it is the last of that request.
struct LinkEvent {
  uint64_t handle = 0;
  int32_t base_position = 0;
  std::vector<int32_t> ids;
  std::string authors;  // As on the wire: one byte per id.
  std::vector<float> entropies;
  std::vector<float> logprobs;  // As long as ids; 0 where the author sent none.
  bool degraded = false;
  bool large_alone = false;
  int32_t cached_tokens = 0;  // Of the prompt; with the first ids.
  std::optional<wire::Finish> finish;
  absl::Status error;  // OK: none.
};

struct LinkCounters {
  uint64_t resubmitted = 0;
  uint64_t dropped_unknown = 0;    // Chunks and rejections of requests that are not live.
  uint64_t dropped_duplicate = 0;  // Base below the committed length.
  uint64_t dropped_gap = 0;        // Base above it.
  uint64_t dropped_term = 0;       // Frames of another term.
  uint64_t connects = 0;           // Welcomes heard.
};

class SchedulerLinkCore {
 public:
  explicit SchedulerLinkCore(LinkOptions options) : options_(std::move(options)) {}

  // ---- what the front ends want ----
  // Starts a request; `handle` is the caller's and never used again. REQUIRES: ids is the prompt.
  void Submit(uint64_t handle, wire::GenerationSpec spec, std::vector<int32_t> ids, absl::Time now);
  // The client has been given everything below `position`. These three ignore handles not live.
  void Acknowledge(uint64_t handle, int32_t position);
  void Cancel(uint64_t handle);
  // The gateway found the end itself (a stop string); no event follows.
  void Finish(uint64_t handle, wire::Finish finish);

  // ---- the transport ----
  // True when the shell should dial now; until OnConnected or OnDisconnected it is false again.
  bool TakeDial(absl::Time now);
  void OnConnected(absl::Time now);
  // Clients receive `why` as the error message while the link is down.
  void OnDisconnected(absl::Time now, std::string why = {});
  void OnFrame(const wire::SchedulerFrame& frame, absl::Time now);
  // True once when the stream must be ended because the peer's Welcome was refused.
  bool TakeHangUp();

  // Expires waits. Call at or after NextDeadline().
  void Tick(absl::Time now);
  // Returns the frame that should be written now, if any.
  std::optional<wire::GatewayFrame> TakeFrame(absl::Time now);
  // When Tick, TakeDial or TakeFrame have something to do without anything else happening.
  absl::Time NextDeadline() const;
  std::vector<LinkEvent> TakeEvents();

  bool up() const { return state_ == State::kUp; }
  // Of the last Welcome or change; empty before the first.
  const wire::PairStatus& pair_status() const { return pair_status_; }
  // REQUIRES: !up().
  std::string WhyDown() const;
  const LinkCounters& counters() const { return counters_; }
  size_t live() const { return requests_.size(); }
  uint64_t term() const { return term_; }

 private:
  enum class State { kDown, kDialling, kGreeting, kUp };
  struct Request {
    wire::GenerationSpec spec;
    std::vector<int32_t> ids;
    std::string authors;
    std::string state;
    std::optional<wire::GrantState> grant;        // After the last id; none before the first chunk.
    int32_t acknowledged = 0;                     // Length that the client has.
    int32_t ack_sent = 0;                         // On this stream.
    bool sent_before = false;                     // On any stream: then a submit is a resubmit.
    bool submitted = false;                       // On this stream.
    absl::Time give_up = absl::InfiniteFuture();  // While not submitted.
    absl::Time deadline = absl::InfiniteFuture();  // Of spec.deadline_ms, from the first Submit.
    absl::Time not_before = absl::InfinitePast();
    int32_t committed() const { return static_cast<int32_t>(ids.size()); }
  };
  using Requests = std::map<uint64_t, Request>;

  void OnWelcome(const wire::SchedulerFrame& frame, absl::Time now);
  void OnChunk(const wire::TokenChunk& chunk);
  void OnRejection(const wire::Rejection& rejection, absl::Time now);
  bool IsNext(const wire::TokenChunk& chunk, const Request& request);
  absl::Status CheckChunk(const wire::TokenChunk& chunk, const Request& request) const;
  void Erase(Requests::iterator it);
  void End(uint64_t handle, absl::Status error);
  wire::Submit MakeSubmit(uint64_t handle, const Request& request, absl::Time now) const;
  void AddSubmits(wire::GatewayFrame* frame, absl::Time now);
  void AddAcks(wire::GatewayFrame* frame, absl::Time now);

  const LinkOptions options_;
  State state_ = State::kDown;
  uint64_t term_ = 0;
  uint64_t highest_term_ = 0;
  int failures_ = 0;
  absl::Time dial_at_ = absl::InfinitePast();
  absl::Time last_ack_ = absl::InfinitePast();
  bool hang_up_ = false;
  bool refused_ = false;  // The peer's Welcome was refused; last_trouble_ says why.
  bool hello_due_ = false;
  bool acks_due_ = false;
  Requests requests_;
  size_t unsubmitted_ = 0;  // Of requests_.
  // Valid for the present stream only.
  std::vector<uint64_t> cancels_;
  std::vector<wire::GatewayFinish> finishes_;
  std::vector<LinkEvent> events_;
  wire::PairStatus pair_status_;
  std::string last_trouble_;
  LinkCounters counters_;
};

}  // namespace tokenrouter
