#include "services/scheduler/request/request_side.h"

#include <algorithm>

namespace tokenrouter {

void RequestSide::Know(Position ids) {
  known = ids;
  read = std::min(read, ids);
}

bool RequestSide::Forget(uint32_t report_epoch, Position have) {
  if (report_epoch != epoch || worker == 0 || have < 0 || have >= known) return false;
  Know(have);
  return true;
}

void RequestSide::Lose(ReopenCause cause) {
  lost_by = cause;
  worker = 0;
  Know(0);
  credit = 0;
  credit_blocked = false;
}

void RequestSide::Suspect(const std::string& worker_id) {
  if (std::find(lost_on.begin(), lost_on.end(), worker_id) != lost_on.end()) return;
  lost_on.push_back(worker_id);
}

}  // namespace tokenrouter
