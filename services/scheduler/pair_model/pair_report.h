// What a pair's model knows and decides, as the state page shows it.
// Threads: on the scheduler's loop.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "proto/packages.h"
#include "services/scheduler/pair_model/pair_model.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

// Fills in everything but the pair's name. `live`: the pair's live requests.
void FillPairModel(const PairModel& model, int32_t live, absl::Time now, wire::PairModel* out);

}  // namespace tokenrouter
