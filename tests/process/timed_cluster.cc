#include "tests/process/timed_cluster.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "libs/status/status_macros.h"
#include "tests/support/tiny_model.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<Cluster>> StartTimedCluster(const std::string& folder,
                                                           int small_workers, int large_workers,
                                                           std::vector<std::string> scheduler_flags,
                                                           std::vector<std::string> gateway_flags) {
  TR_RETURN_IF_ERROR(
      WriteTinyModel(TinySmall(Architecture::kLlama, 1), TinyFormat::kFolderF32, folder));
  const bool has_mode =
      std::any_of(scheduler_flags.begin(), scheduler_flags.end(),
                  [](const std::string& flag) { return absl::StartsWith(flag, "--service_mode"); });
  if (!has_mode) scheduler_flags.emplace_back("--service_mode=routed");
  return Cluster::Start(
      {.small_workers = small_workers,
       .large_workers = large_workers,
       .tokenizer = folder,
       .worker_flags = {"--engine=timed", "--timed_curve=fast", "--tokenizer=" + folder},
       .scheduler_flags = std::move(scheduler_flags),
       .gateway_flags = std::move(gateway_flags)});
}

}  // namespace tokenrouter
