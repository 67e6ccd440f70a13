// RequestMachine is one request in the scheduler: its canonical history, which side holds the
// decode grant, what each side knows, and its phase. Rows that row_check.h lets pass change it;
// the commands that bring a side up to date are filled from it (side_commands.h). It sends nothing
// and chooses no worker.
// Ownership: owned by RequestRegistry. Threads: lives on the scheduler's loop.
// Units: positions are canonical, prompt included. Errors: an illegal phase change is a CHECK.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "libs/tokens/token_history.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/request/request_grant.h"
#include "services/scheduler/request/request_phase.h"
#include "services/scheduler/request/request_side.h"
#include "services/scheduler/request/service_record.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

class RequestMachine {
 public:
  struct Origin {
    uint64_t key = 0;  // The number on worker streams, unique in this term.
    StreamId gateway = 0;
    uint64_t handle = 0;  // The number on the gateway's stream.
    int pair = 0;         // The pair's number in WorkerDirectory.
    absl::Time submitted_at;
  };

  // REQUIRES: history has no tail.
  RequestMachine(Origin origin, wire::GenerationSpec spec, TokenHistory history, std::string state,
                 RequestGrant grant, Position credit_window);

  const Origin& origin() const { return origin_; }
  const wire::GenerationSpec& spec() const { return spec_; }

  // ---- the text ----
  const TokenHistory& history() const { return history_; }
  const std::string& state() const { return state_; }  // Of its algorithm, as of the last row.
  // Commits the row. REQUIRES: !RefusesRow(*this, role, ...).
  void Accept(Role role, const wire::RowReport& row);

  // ---- the decode grant ----
  const RequestGrant& grant() const { return grant_; }
  void SetGrant(RequestGrant grant);
  // The large model is gone for good: the small model decodes to the end, and the tail is dropped.
  void FallBackToSmall();

  // ---- the sides ----
  const RequestSide& side(Role role) const { return sides_[static_cast<int>(role)]; }
  RequestSide& mutable_side(Role role) { return sides_[static_cast<int>(role)]; }
  // The side with the decode grant is credit-blocked.
  bool credit_blocked() const { return side(grant_.role).credit_blocked; }

  // ---- its service ----
  const RequestPhase& phase() const { return phase_; }
  void SetPhase(Phase phase, absl::Time now) { phase_.Change(phase, now); }
  const ServiceRecord& service() const { return service_; }
  ServiceRecord& mutable_service() { return service_; }

 private:
  void UpdateOtherSide(Role role, const wire::RowReport& row);
  void SetCreditBlocked(Role role, const wire::RowReport& row);

  const Origin origin_;
  const wire::GenerationSpec spec_;
  TokenHistory history_;
  std::string state_;
  RequestSide sides_[kRoles];
  RequestGrant grant_;
  RequestPhase phase_;
  ServiceRecord service_;
};

}  // namespace tokenrouter
