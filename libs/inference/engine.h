// Engine runs one model: it owns weights and KV cache and extends sequences by batches of rows. No
// torch type appears here; real, timed and fake engines implement it. Ownership: owns all KV. A
// sequence exists from its first Step (first == 0) until Release. Threads: not thread-safe; one
// owner thread calls everything except info(), which is const after construction. Identity: within
// one numerics class the result of a row never depends on the other rows, on how its ids were cut
// into steps, or on where its blocks lie.
// Errors: Step takes nothing when it fails. RESOURCE_EXHAUSTED: fewer free blocks than the batch
// needs. INVALID_ARGUMENT: an id outside the usable ids, or a row beyond the context limit. A row
// whose `first` is not the sequence's length, an unknown sequence, or an empty row is a CHECK.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "libs/inference/step_batch.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct EngineInfo {
  std::string model_name;
  std::string numerics_class;  // Hash of build, instruction set, device, formats, revision
                               // (architecture.md 4).
  int32_t usable_ids = 0;      // Ids at or above it are masked and excluded from entropy.
  Position context_limit = 0;  // Tokens of one sequence.
  int32_t block_size = 0;      // Tokens per KV block.
  int64_t total_blocks = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;
  // Blocks that no sequence holds. Free blocks are these and the reclaimable ones.
  virtual int64_t unallocated_blocks() const = 0;
  // Blocks that only reclaimable sequences hold; they are released when those are.
  virtual int64_t reclaimable_blocks() const = 0;
  // Tokens of the sequence in KV; 0 when unknown.
  virtual Position Length(SequenceId sequence) const = 0;

  virtual absl::Status Step(const StepBatch& batch, StepResult* result) = 0;

  // Drops the KV from position `length` on. REQUIRES: length <= Length(sequence).
  virtual void Truncate(SequenceId sequence, Position length) = 0;
  // Frees the sequence; an unknown one is ignored.
  virtual void Release(SequenceId sequence) = 0;
  // `child` starts as the first `length` tokens of `parent`, sharing whole blocks.
  // REQUIRES: child unknown, length <= Length(parent).
  virtual absl::Status Fork(SequenceId parent, SequenceId child, Position length) = 0;

  // The sequence is never extended again: it is only kept to be forked, truncated or released.
  // REQUIRES: known, not reclaimable yet.
  virtual void MarkReclaimable(SequenceId sequence) = 0;

  // The expected time of a step of that many rows and new ids; zero while the engine has no
  // estimate.
  virtual absl::Duration Predict(int rows, int64_t new_ids) const = 0;
};

}  // namespace tokenrouter
