// RequestMachine is one request in the scheduler: its canonical history, which side holds the
// decode grant, what each side knows, and its phase. It decides which worker messages are accepted
// and fills the commands that bring a side up to date; it sends nothing and chooses no worker.
// Ownership: owned by RequestRegistry. Threads: lives on the scheduler's loop.
// Units: positions are canonical, prompt included. A side with worker 0 is not open on any worker.
// Errors: a message that is not accepted yields a DropReason; an illegal phase change is a CHECK.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "libs/tokens/token_history.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/options/reasons.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// The phase of a request. Legal changes, and what causes them:
//   kWaiting    -> kRunning, kReleasable  a worker of the small or the large side was found
//   kWaiting    -> kHeld                  likewise, but the client must catch up first
//   kHeld       -> kReleasable, kWaiting  the client caught up; there is a large worker or not
//   kHeld       -> kRunning               there is none, and the small model decodes to the end
//   kReleasable -> kRunning               the release policy released it
//   kReleasable -> kWaiting               its worker was lost
//   kRunning    -> all                    the decode grant moved, or its worker was lost
//   all         -> kEnded                 finished, rejected or abandoned; nothing follows
// A change to the same phase is a new decode grant, a reopen or another wait.
enum class Phase : uint8_t {
  kWaiting = 0,     // The side with the decode grant has no worker: it waits for a slot.
  kHeld = 1,        // The decode grant goes to the large side once the client has caught up.
  kReleasable = 2,  // The large side has the ids; the release policy decides when it runs.
  kRunning = 3,     // The side with the decode grant may write.
  kEnded = 4,
};
inline constexpr int kPhases = 5;
inline constexpr const char* kPhaseNames[kPhases] = {"waiting", "held", "releasable", "running",
                                                     "ended"};

class RequestMachine {
 public:
  struct Origin {
    uint64_t key = 0;  // The number on worker streams, unique in this term.
    StreamId gateway = 0;
    uint64_t handle = 0;  // The number on the gateway's stream.
    int pair = 0;         // The pair's number in WorkerDirectory.
    absl::Time submitted_at;
  };
  struct Side {
    StreamId worker = 0;
    // The lost worker that it was open on, while nobody has decided yet where it goes; 0: none.
    StreamId awaited = 0;
    uint32_t epoch = 0;
    Position known = 0;
    Position read = 0;  // How many of the known ids are in its KV, as far as is known.
    void Know(Position ids) {
      known = ids;
      read = std::min(read, ids);
    }
    Position credit = 0;
    int numerics_class = 0;  // Of the last worker; 0: none yet. Kept when the worker is lost.
    ReopenCause lost_by = ReopenCause::kWorkerLost;  // Valid once epoch > 0 and worker is 0.
    int losses = 0;  // Workers in a row that were lost while it ran there; > 0: it is suspected.
    std::vector<std::string> lost_on;  // Their worker_ids.
    int rows = 0;                      // Accepted since it was opened.
  };
  // The decode grant that an algorithm decided on.
  struct AlgorithmGrant {
    Role role = Role::kSmall;
    wire::DecodeGrant terms;
  };
  struct DecodeGrant {
    Role role = Role::kSmall;
    wire::DecodeGrant terms;
    // Large-only service gave the large side this grant, or a longer window (mode_rule.h).
    bool large_alone = false;
    // The algorithm's decision that this grant replaced, less the tokens written since. Absent when
    // the grant is the algorithm's own.
    std::optional<AlgorithmGrant> own = std::nullopt;
  };

  // REQUIRES: history has no tail.
  RequestMachine(Origin origin, wire::GenerationSpec spec, TokenHistory history, std::string state,
                 DecodeGrant grant, Position credit_window);

  const Origin& origin() const { return origin_; }
  const wire::GenerationSpec& spec() const { return spec_; }
  const TokenHistory& history() const { return history_; }
  const std::string& state() const { return state_; }
  const Side& side(Role role) const { return sides_[static_cast<int>(role)]; }
  const DecodeGrant& grant() const { return grant_; }
  Phase phase() const { return phase_; }
  Position acked() const { return acked_; }
  Position credit_window() const { return credit_window_; }
  bool degraded() const { return degraded_; }
  bool credit_blocked() const { return credit_blocked_; }
  bool placed() const { return placed_; }  // It has had a worker, so it is no longer a newcomer.
  int reopens() const { return reopens_; }
  // Prompt ids that were cached on the side that wrote first; 0 before its first row.
  int32_t cached_ids() const { return cached_ids_.value_or(0); }
  // Uncomputed tokens: ids that the side must compute before it can answer, at least 1. They are
  // the ids it was not sent or has not computed, and the token that it wrote last. What a prefix
  // cache or background prefill saves is not known here.
  Position Uncomputed(Role role) const;
  // Whether the side has computed the prompt, as far as its rows show.
  bool HasRead(Role role) const { return side(role).read >= history_.prompt_length(); }
  absl::Time phase_since() const { return phase_since_; }
  absl::Time wait_until() const { return wait_until_; }
  // When its last token was committed, or when it was submitted if this term has committed none.
  absl::Time committed_at() const { return committed_at_; }
  StreamId counted_on() const { return counted_on_; }
  Position counted_ids() const { return counted_ids_; }

  // ---- rows ----
  // Why a row of `worker` is not accepted; no value when it is.
  std::optional<DropReason> Refuses(Role role, StreamId worker, const wire::RowReport& row) const;
  void CommittedAt(absl::Time now) { committed_at_ = now; }
  // The first row that writes or hands off says how much of the prompt was cached.
  void NoteCached(const wire::RowReport& row);
  // Commits the row. REQUIRES: !Refuses(role, ...).
  void Accept(Role role, const wire::RowReport& row);

  // ---- the decode grant ----
  void SetGrant(DecodeGrant grant);
  // The decode grant becomes the algorithm's own decision. REQUIRES: grant().own.
  void RestoreAlgorithmGrant();
  // The large model is gone for good: the small model decodes to the end, and the tail is dropped.
  void FallBackToSmall();
  bool HoldsHandoff() const;

  // ---- sides ----
  // Opens the side on `worker`: the epoch grows and the whole history is sent.
  void FillOpen(Role role, StreamId worker, int numerics_class, wire::Open* open);
  // Sends an open side the ids that it does not know, and the decode grant if the side holds it.
  void FillExtend(Role role, wire::Extend* extend);
  // The worker reports that it knows only `have` ids. False when the report is stale or no change.
  bool Forget(Role role, uint32_t epoch, Position have);
  // The side is no longer open on any worker.
  void LoseSide(Role role, ReopenCause cause);
  // The lost side is not opened elsewhere before that is decided; 0: it may be.
  void Await(Role role, StreamId lost) { mutable_side(role).awaited = lost; }
  void CountReopen() { ++reopens_; }
  // The worker was lost while the request ran there. One that is lost again was not dead: a process
  // that crashed comes back under another worker_id.
  void Suspect(Role role, const std::string& worker_id);
  void Absolve(Role role);

  // ---- client ----
  // True when the position is higher than the last one.
  bool Acknowledge(Position position, absl::Time now);
  // Since when it has waited for its client (credit_blocked or held) without an acknowledgement.
  absl::Time stalled_since() const { return stalled_since_; }
  void StallsFrom(absl::Time now) { stalled_since_ = now; }
  bool stall_armed() const { return stall_armed_; }
  void ArmStall(bool armed) { stall_armed_ = armed; }
  // The new credit to send to an open side, if it is due. `with_grant`: the side takes the decode
  // grant now.
  std::optional<Position> RaiseCredit(Role role, bool with_grant);

  // ---- phases ----
  void SetPhase(Phase phase, absl::Time now);
  void WaitUntil(absl::Time until) { wait_until_ = until; }
  // The worker among whose ready rows this request counts; 0: none.
  void CountOn(StreamId worker) { counted_on_ = worker; }
  // The uncomputed tokens that it counts there.
  void CountIds(Position ids) { counted_ids_ = ids; }

 private:
  Side& mutable_side(Role role) { return sides_[static_cast<int>(role)]; }
  void UpdateOtherSide(Role role, const wire::RowReport& row);
  void SetCreditBlocked(Role role, const wire::RowReport& row);
  void CountDownGrant(int32_t written);
  bool WellFormed(const wire::RowReport& row) const;

  const Origin origin_;
  const wire::GenerationSpec spec_;
  const Position credit_window_;
  TokenHistory history_;
  std::string state_;
  Side sides_[kRoles];
  DecodeGrant grant_;
  Phase phase_ = Phase::kWaiting;
  Position acked_;
  bool degraded_ = false;
  bool credit_blocked_ = false;
  bool placed_ = false;
  int reopens_ = 0;
  std::optional<int32_t> cached_ids_;
  absl::Time phase_since_;
  absl::Time committed_at_;
  absl::Time stalled_since_;
  bool stall_armed_ = false;
  absl::Time wait_until_ = absl::InfiniteFuture();
  StreamId counted_on_ = 0;
  Position counted_ids_ = 0;
};

}  // namespace tokenrouter
