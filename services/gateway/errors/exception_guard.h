// The one place where the gateway catches exceptions: those of libraries, in practice bad_alloc.
// Nothing here throws on purpose, but one request that asks for too much memory must not end the
// process. Errors: INTERNAL with what the exception says; it is logged. Threads: thread-safe.
#pragma once

#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "libs/telemetry/log.h"

namespace tokenrouter {

template <typename Work>
absl::Status CatchExceptions(Work&& work) {
  try {
    std::forward<Work>(work)();
    return absl::OkStatus();
  } catch (const std::exception& exception) {
    LogError("exception", {{"what", exception.what()}});
    return absl::InternalError(absl::StrCat("the gateway failed: ", exception.what()));
  }
}

}  // namespace tokenrouter
