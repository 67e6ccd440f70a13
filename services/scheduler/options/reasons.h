// Why the scheduler refuses, drops, reopens, evicts and takes leases back: the reasons that decide,
// with the names under which metrics and replies show them. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>

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

template <typename Enum>
constexpr size_t Index(Enum value) {
  return static_cast<size_t>(value);
}

}  // namespace tokenrouter
