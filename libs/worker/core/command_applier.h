// CommandApplier does to the sequences what the scheduler's commands say: open, extend, close,
// release, credit. What the scheduler must hear of it (missing ids, refusals, closed requests) goes
// into the pending frame.
// Ownership: the store, limits, counters and the pending frame must outlive it. Threads: not
// thread-safe; lives on the engine's owner loop. Errors: none are returned; a request that cannot
// be served ends with FINISH_REASON_ERROR and a detail.
#pragma once

#include <cstdint>
#include <string>

#include "libs/worker/core/sequence_store.h"
#include "libs/worker/core/worker_core_options.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/worker.pb.h"

namespace tokenrouter {

class CommandApplier {
 public:
  CommandApplier(int32_t max_sequences, const SequenceLimits* limits, SequenceStore* store,
                 WorkerCounters* counters, wire::WorkerFrame* pending)
      : max_sequences_(max_sequences),
        limits_(limits),
        store_(store),
        counters_(counters),
        pending_(pending) {}

  void ApplyRequests(const wire::CommandFrame& frame);
  // Ends a request that cannot be served; `why` is for people and names the limit.
  void Refuse(SequenceState* sequence, const std::string& why);

 private:
  void Open(const wire::Open& open);
  void Extend(const wire::Extend& extend);
  void Release(uint64_t request);
  void Credit(const wire::Credit& credit);
  void Close(const wire::Close& close);
  bool HasSpace();

  const int32_t max_sequences_;
  const SequenceLimits* const limits_;
  SequenceStore* const store_;
  WorkerCounters* const counters_;
  wire::WorkerFrame* const pending_;
};

}  // namespace tokenrouter
