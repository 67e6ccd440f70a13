#include "libs/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <string_view>

#include "absl/strings/str_cat.h"
#include "libs/telemetry/log.h"

namespace tokenrouter {
namespace {

void WriteLine(gpr_log_func_args* line) {
  const LogLevel level =
      line->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kDebug;
  std::string_view file = line->file;
  file.remove_prefix(file.find_last_of('/') + 1);  // Zero when there is none.
  Log(level, "grpc",
      {{"at", absl::StrCat(std::string(file), ":", line->line)},
       {"message", std::string_view(line->message).substr(0, kMaxGrpcMessage)}});
}

}  // namespace

void SendGrpcLogHere() { gpr_set_log_function(WriteLine); }

}  // namespace tokenrouter
