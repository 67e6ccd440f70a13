#include "libs/worker/engines/synthetic_engine_setup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/synthetic/fake_engine.h"
#include "libs/synthetic/timed_engine.h"
#include "libs/text/tokenizer.h"

namespace tokenrouter {

absl::StatusOr<WorkerEngine> MakeSyntheticEngine(Role role, const WorkerOptions& options) {
  WorkerEngine made;
  SyntheticEngineOptions hash;
  hash.model.seed = static_cast<uint64_t>(options.seed);
  hash.model.role = role;
  hash.model.acceptance_rate = options.timed_agreement;
  hash.model_name = options.model_name.empty() ? absl::StrCat(options.engine, "-", RoleName(role))
                                               : options.model_name;
  if (options.context_limit > 0) hash.context_limit = options.context_limit;
  hash.total_blocks =
      std::max<int64_t>(1, options.kv_bytes / (hash.block_size * kHashKvBytesPerToken));
  if (!options.tokenizer.empty()) {
    TR_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                        Tokenizer::Load(options.tokenizer));
    made.tokenizer_fingerprint = tokenizer->Fingerprint();
    made.eos_ids.assign(tokenizer->eos_ids().begin(), tokenizer->eos_ids().end());
    hash.model.usable_ids = tokenizer->usable_ids();
    hash.model.eos_ids = made.eos_ids;
  }
  if (options.engine == "fake") {
    made.engine = std::make_unique<FakeEngine>(hash);
    return made;
  }
  TR_ASSIGN_OR_RETURN(const StepCurve curve, StepCurve::Parse(options.timed_curve, role));
  made.engine = std::make_unique<TimedEngine>(hash, curve, std::make_unique<SleepingPacer>(),
                                              static_cast<uint64_t>(options.seed));
  return made;
}

}  // namespace tokenrouter
