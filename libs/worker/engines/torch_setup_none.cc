#include "libs/worker/engines/torch_setup.h"

namespace tokenrouter {

absl::StatusOr<WorkerEngine> MakeTorchEngine(const WorkerOptions& /*options*/,
                                             const LoadProgress& /*progress*/) {
  return absl::UnimplementedError(
      "--engine=torch: this binary was built without torch; configure with "
      "-DTOKENROUTER_TORCH=ON, or use --engine=timed");
}

}  // namespace tokenrouter
