// What the core has counted since its start, for metrics and tests. Plain numbers that only grow;
// the server publishes their differences. Threads: lives on the scheduler's loop.
#pragma once

#include <array>
#include <cstdint>

#include "libs/batching_model/wait_outcome.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

// Why a message about a request was not applied.
enum class DropReason : uint8_t {
  kTerm,            // The frame is of another term.
  kUnknownRequest,  // The request has ended, or was never known.
  kEpoch,           // The side was reopened since.
  kNotGranted,      // The side does not hold the decode grant, or may not run yet.
  kBase,            // The base position is not the committed length.
  kMalformed,       // Lengths disagree, or a value is outside its range.
};
inline constexpr int kDropReasons = 6;
inline constexpr const char* kDropReasonNames[kDropReasons] = {
    "term", "unknown_request", "epoch", "not_granted", "base", "malformed"};

enum class RejectReason : uint8_t {
  kInvalid,
  kDuplicate,
  kQueueFull,
  kMaxRequests,
  kContextLimit,
  kNoSmallWorker,
  kLargePoolGone,
  kQueueTimeout,
  kDeadline,
  kClientSlow,
  kReopenLimit,
  kMaxIds,
  kCrashSuspect,
};
inline constexpr int kRejectReasons = 13;
inline constexpr const char* kRejectReasonNames[kRejectReasons] = {
    "invalid",         "duplicate",       "queue_full",    "max_requests", "context_limit",
    "no_small_worker", "large_pool_gone", "queue_timeout", "deadline",     "client_slow",
    "reopen_limit",    "max_ids",         "crash_suspect"};

// Why a side of a request was opened again.
enum class ReopenCause : uint8_t { kWorkerLost, kDiverged, kEvicted, kStalled, kReattached };
inline constexpr int kReopenCauses = 5;
inline constexpr const char* kReopenCauseNames[kReopenCauses] = {
    "worker_lost", "diverged", "evicted", "stalled", "reattached"};

// Why a large side was evicted (eviction_choice.h).
enum class EvictionNeed : uint8_t {
  kPays,     // Its KV reservation is worth more to another request.
  kOverdue,  // Its residency amortised its prefill, and another request is overdue.
  kGrowth,   // A resident outgrew the free blocks.
};
inline constexpr int kEvictionNeeds = 3;
inline constexpr const char* kEvictionNeedNames[kEvictionNeeds] = {"pays", "overdue", "growth"};

// How a lease on a shared device ended.
enum class LeaseOutcome : uint8_t { kReturned, kExpired, kHolderLost };
inline constexpr int kLeaseOutcomes = 3;
inline constexpr const char* kLeaseOutcomeNames[kLeaseOutcomes] = {"returned", "expired",
                                                                   "holder_lost"};

struct SchedulerCounters {
  std::array<uint64_t, 3> tokens{};          // By Author.
  std::array<uint64_t, 3> overrun_tokens{};  // By Author: committed beyond the finish.
  std::array<uint64_t, kRoles> handoffs{};
  std::array<uint64_t, kRejectReasons> rejected{};
  std::array<uint64_t, kDropReasons> dropped{};
  std::array<std::array<uint64_t, kReopenCauses>, kRoles> reopened{};
  std::array<std::array<uint64_t, kLeaseOutcomes>, kRoles> leases{};
  // On dedicated devices: releases of the large side. On shared devices: leases of either side.
  std::array<WaitCounts, kRoles> deferrals{};
  std::array<uint64_t, kEvictionNeeds> evicted{};
  uint64_t rebuilt_ids = 0;           // Ids sent again to large workers after an eviction.
  uint64_t background_opens = 0;      // Large sides opened before their first decode grant.
  uint64_t forwarded_ids = 0;         // Ids sent to large workers between decode grants.
  uint64_t large_alone_requests = 0;  // Requests admitted to large-only service.
  uint64_t finished = 0;              // Requests that ended with a Finish.
  uint64_t frames_in = 0;
  uint64_t frames_out = 0;
};

template <typename Enum>
constexpr size_t Index(Enum value) {
  return static_cast<size_t>(value);
}

}  // namespace tokenrouter
