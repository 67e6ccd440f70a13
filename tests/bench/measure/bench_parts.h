// The main function of a bench, and the parts that some of them have. Threads: none.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

// The exit code of `run`; errors are printed on stderr.
inline int BenchMain(absl::Status (*run)(int argc, char** argv), int argc, char** argv) {
  const absl::Status status = run(argc, argv);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

// By the names that --part takes.
template <typename Options>
using BenchParts = std::vector<std::pair<std::string, std::function<absl::Status(const Options&)>>>;

template <typename Options>
std::string PartNames(const BenchParts<Options>& parts) {
  return absl::StrJoin(parts, ", ",
                       [](std::string* out, const auto& part) { out->append(part.first); });
}

// Runs those of the comma-separated list in its order. INVALID_ARGUMENT for an unknown name, before
// the parts after it.
template <typename Options>
absl::Status RunParts(const BenchParts<Options>& parts, const std::string& names,
                      const Options& options) {
  for (const auto name : absl::StrSplit(names, ',')) {
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const auto& known) { return known.first == name; });
    if (part == parts.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--part=", name, "; allowed: ", PartNames(parts)));
    }
    TR_RETURN_IF_ERROR(part->second(options));
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
