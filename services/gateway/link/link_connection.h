// LinkConnection is the state of a gateway's stream to the scheduler: when to dial, whom it has
// greeted, and the term in force. It knows no request.
// States: down -> (TakeDial) dialling -> (OnConnected) greeting -> (Welcome) up -> (OnDisconnected)
// down. Ownership: owns all it is given. Threads: not thread-safe, one owner. Time: any monotonic
// origin. Errors: a Welcome of an earlier term or another protocol is refused; WhyDown says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/packages.h"
#include "services/gateway/link/link_options.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

class LinkConnection {
 public:
  // `options` must outlive it.
  explicit LinkConnection(const LinkOptions* options) : options_(*options) {}

  // True when the shell should dial now; until OnConnected or OnDisconnected it is false again.
  bool TakeDial(absl::Time now);
  void OnConnected();
  // False when it was down already. Clients receive `why` while the link is down.
  bool OnDisconnected(absl::Time now, std::string why);
  // Takes a Welcome, and notes what the frame says of the pair. False when the frame is not of the
  // present term.
  bool Hears(const wire::SchedulerFrame& frame);
  // True once when the stream must be ended because the peer's Welcome was refused.
  bool TakeHangUp();
  // The greeting, once per stream.
  std::optional<wire::GatewayHello> TakeHello();

  // When to dial; the infinite future unless it is down.
  absl::Time dial_at() const;
  bool up() const { return state_ == State::kUp; }
  // Of the last Welcome or change; empty before the first.
  const wire::PairStatus& pair_status() const { return pair_status_; }
  // REQUIRES: !up().
  std::string WhyDown() const;
  uint64_t term() const { return term_; }  // 0 unless it is up.

 private:
  enum class State { kDown, kDialling, kGreeting, kUp };

  void OnWelcome(const wire::SchedulerFrame& frame);

  const LinkOptions& options_;
  State state_ = State::kDown;
  uint64_t term_ = 0;
  uint64_t highest_term_ = 0;
  int failures_ = 0;
  absl::Time dial_at_ = absl::InfinitePast();
  bool hang_up_ = false;
  bool refused_ = false;  // The peer's Welcome was refused; last_trouble_ says why.
  bool hello_due_ = false;
  wire::PairStatus pair_status_;
  std::string last_trouble_;
};

}  // namespace tokenrouter
