#include "tests/bench/engine/real_pair.h"

#include "absl/strings/str_cat.h"

namespace tokenrouter {

absl::StatusOr<std::unique_ptr<Cluster>> StartPair(const EngineBenchOptions& options,
                                                   const char* part, bool prefix_cache) {
  if (options.small.empty() || options.large.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the part ", part, " needs --small and --large"));
  }
  return Cluster::Start(
      {.tokenizer = options.small,
       .worker_flags = {absl::StrCat("--weight_format=", options.formats.front()),
                        absl::StrCat("--kv_format=", options.kv_format), "--device_key=cpu",
                        absl::StrCat("--prefix_cache=", prefix_cache ? "true" : "false"),
                        absl::StrCat("--threads=", options.threads)},
       .small_flags = {"--model=" + options.small},
       .large_flags = {"--model=" + options.large}});
}

}  // namespace tokenrouter
