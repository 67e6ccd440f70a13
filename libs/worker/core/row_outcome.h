// What becomes of the choices of a row: the three functions of the algorithm, windows and stop
// rules applied to one sequence after its forward pass. Pure but for the sequence it changes.
// Threads: lives with the sequence. Errors: none; an algorithm that breaks its contract is a CHECK.
#pragma once

#include <span>

#include "libs/inference/step_batch.h"
#include "libs/worker/core/sequence_state.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

struct RowOutcome {
  // request, epoch and base_position are filled too.
  wire::RowReport report;
  // KV beyond it belongs to ids that were dropped.
  Position valid_kv = 0;
  int32_t committed = 0;  // Ids committed by this row.
  bool handed_off = false;
  bool finished = false;
};

// REQUIRES: sequence->grant, and choices.size() == sequence->choices().
RowOutcome ResolveRow(std::span<const Choice> choices, const SequenceLimits& limits,
                      SequenceState* sequence);

// A report that the sequence waits for credit.
wire::RowReport CreditBlockedReport(const SequenceState& sequence);

// A report that ends the request where it stands.
wire::RowReport FinishReport(const SequenceState& sequence, FinishReason reason,
                             const std::string& detail);

}  // namespace tokenrouter
