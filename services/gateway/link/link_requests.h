// LinkRequests are the live requests of a gateway's stream to the scheduler: what they committed,
// what the client has of it, and what must be sent next. A request survives the stream: once the
// next one is up, every live request is submitted again as of its last committed token.
// Ownership: owns all it is given. Threads: not thread-safe, one owner. Time: any monotonic origin.
// Errors: reach a request as LinkEvent::error, whose code the client receives. A chunk whose
// base_position is not the committed length, or whose handle is not live, is dropped and counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "libs/tokens/token_record.h"
#include "proto/packages.h"
#include "services/gateway/link/link_options.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// Something that happened to one request. With `finish` or an error it is the last of that request.
struct LinkEvent {
  uint64_t handle = 0;
  int32_t base_position = 0;
  std::vector<TokenRecord> tokens;
  bool degraded = false;
  bool large_alone = false;
  int32_t cached_tokens = 0;  // Of the prompt; with the first ids.
  std::optional<wire::Finish> finish;
  absl::Status error;  // OK: none.
};

class LinkRequests {
 public:
  // Both must outlive it.
  LinkRequests(const LinkOptions* options, LinkCounters* counters)
      : options_(*options), counters_(counters) {}

  // ---- what the front ends want ----
  // Starts a request; `handle` is the caller's and never used again. REQUIRES: ids is the prompt.
  void Submit(uint64_t handle, wire::GenerationSpec spec, std::vector<int32_t> ids, absl::Time now);
  // The client has been given everything below `position`. These three ignore handles not live.
  void Acknowledge(uint64_t handle, int32_t position);
  void Cancel(uint64_t handle);
  // The gateway found the end itself (a stop string); no event follows.
  void Finish(uint64_t handle, wire::Finish finish);

  // ---- the stream ----
  void OnStreamUp(absl::Time now);
  void OnStreamLost(absl::Time now);
  void OnChunk(const wire::TokenChunk& chunk);
  void OnRejection(const wire::Rejection& rejection, absl::Time now);
  // Ends the requests that have waited too long for a stream, with the error that `why` makes, and
  // those whose deadline has passed meanwhile.
  void Expire(absl::Time now, absl::FunctionRef<absl::Status()> why);
  // Adds what should be sent now. False when that is nothing. REQUIRES: the stream is up.
  bool Fill(wire::GatewayFrame* frame, absl::Time now);
  // When Expire or Fill have something to do without anything else happening.
  absl::Time NextDeadline(bool up) const;

  std::vector<LinkEvent> TakeEvents();
  size_t live() const { return requests_.size(); }

 private:
  struct Request {
    wire::GenerationSpec spec;
    std::vector<int32_t> ids;
    std::string authors;
    std::string state;
    std::optional<wire::GrantState> grant;         // As heard last; none before the first chunk.
    bool grant_heard = false;                      // Since the last submit.
    int32_t acknowledged = 0;                      // Length that the client has.
    int32_t ack_sent = 0;                          // On this stream.
    bool sent_before = false;                      // On any stream: then a submit is a resubmit.
    bool submitted = false;                        // On this stream.
    absl::Time give_up = absl::InfiniteFuture();   // While not submitted.
    absl::Time deadline = absl::InfiniteFuture();  // Of spec.deadline_ms, from the first Submit.
    absl::Time not_before = absl::InfinitePast();
    int32_t committed() const { return static_cast<int32_t>(ids.size()); }
  };
  using Requests = std::map<uint64_t, Request>;

  bool IsNext(const wire::TokenChunk& chunk, const Request& request);
  absl::Status CheckChunk(const wire::TokenChunk& chunk, const Request& request) const;
  void Erase(Requests::iterator it);
  void End(uint64_t handle, absl::Status error);
  wire::Submit MakeSubmit(uint64_t handle, const Request& request, absl::Time now) const;
  void AddSubmits(wire::GatewayFrame* frame, absl::Time now);
  void AddAcks(wire::GatewayFrame* frame, absl::Time now);

  const LinkOptions& options_;
  LinkCounters* const counters_;
  Requests requests_;
  size_t unsubmitted_ = 0;  // Of requests_.
  // Valid for the present stream only.
  std::vector<uint64_t> cancels_;
  std::vector<wire::GatewayFinish> finishes_;
  absl::Time last_ack_ = absl::InfinitePast();
  bool acks_due_ = false;
  std::vector<LinkEvent> events_;
};

}  // namespace tokenrouter
