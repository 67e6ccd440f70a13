#include "services/scheduler/request/row_check.h"

#include "libs/routing/algorithm.h"
#include "libs/routing/wire_records.h"
#include "libs/routing/wire_types.h"

namespace tokenrouter {
namespace {

bool WellFormed(const wire::RowReport& row) {
  if (!RecordsFit(row)) return false;
  if (row.state().size() > kMaxRequestState) return false;
  if (row.has_handoff() && !FromWire(row.handoff().to()).ok()) return false;
  if (row.has_handoff() && row.handoff().verify() > row.tail_size()) return false;
  return row.has_handoff() || row.tail_size() == 0;
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
