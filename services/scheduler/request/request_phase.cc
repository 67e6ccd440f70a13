#include "services/scheduler/request/request_phase.h"

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

// Rows: from; columns: to. The table of the Phase enum.
constexpr bool kLegal[kPhases][kPhases] = {
    /* waiting */ {true, true, true, true, true},
    /* held */ {true, true, true, true, true},
    /* releasable */ {true, false, true, true, true},
    /* running */ {true, true, true, true, true},
    /* ended */ {false, false, false, false, false},
};

}  // namespace

void RequestPhase::Change(Phase to, absl::Time now) {
  TR_CHECK(kLegal[static_cast<int>(value_)][static_cast<int>(to)])
      << "request " << request_ << " from " << name() << " to "
      << kPhaseNames[static_cast<int>(to)];
  if (value_ != to) since_ = now;
  value_ = to;
}

}  // namespace tokenrouter
