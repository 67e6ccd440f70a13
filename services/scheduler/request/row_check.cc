#include "services/scheduler/request/row_check.h"

#include "libs/routing/algorithm.h"
#include "libs/routing/wire_types.h"

namespace tokenrouter {
namespace {

bool WellFormed(const wire::RowReport& row) {
  const int ids = row.ids_size();
  if (static_cast<int>(row.authors().size()) != ids) return false;
  if (row.entropies_size() != ids && row.entropies_size() != 0) return false;
  if (row.logprobs_size() != ids && row.logprobs_size() != 0) return false;
  if (row.state().size() > kMaxRequestState) return false;
  if (row.has_handoff() && !FromWire(row.handoff().to()).ok()) return false;
  if (row.has_handoff() && row.handoff().verify() > row.tail_size()) return false;
  if (!row.has_handoff() && row.tail_size() > 0) return false;
  for (const char author : row.authors()) {
    if (author != 1 && author != 2) return false;
  }
  return true;
}

}  // namespace

std::optional<DropReason> RefusesRow(const RequestMachine& request, Role role, StreamId worker,
                                     const wire::RowReport& row) {
  const RequestSide& side = request.side(role);
  if (side.worker != worker || row.epoch() != side.epoch) return DropReason::kEpoch;
  // Before its release a row can only become credit-blocked or fail.
  const bool writes = row.ids_size() > 0 || row.has_handoff();
  const bool may_write =
      request.phase() == Phase::kRunning || (request.phase() == Phase::kReleasable && !writes);
  if (request.grant().role != role || !may_write) return DropReason::kNotGranted;
  if (row.base_position() != request.history().committed()) return DropReason::kBase;
  if (!WellFormed(row)) return DropReason::kMalformed;
  return std::nullopt;
}

}  // namespace tokenrouter
