#include "libs/telemetry/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <boost/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/telemetry/plain_json.h"

namespace tokenrouter {
namespace {

constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error"};
constexpr spdlog::level::level_enum kSpdlogLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                       spdlog::level::warn, spdlog::level::err};

std::string& ProcessName() {
  static std::string name = "tokenrouter";
  return name;
}

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("tokenrouter",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%v");
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *logger;
}

// Boost.JSON writes strings unchanged; a log line must be valid UTF-8 even if a peer sent other
// bytes.
std::string AsciiSafe(const std::string& text) {
  std::string safe = text;
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return safe;
}

}  // namespace

absl::Status InitLog(std::string_view process, std::string_view level) {
  ProcessName() = std::string(process);
  for (int i = 0; i < 4; ++i) {
    if (level == kLevelNames[i]) {
      Logger().set_level(kSpdlogLevels[i]);
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("log_level is ", std::string(level), "; allowed: debug, info, warning, error"));
}

std::string FormatLogLine(std::string_view timestamp, LogLevel level, std::string_view process,
                          std::string_view event, std::initializer_list<LogField> fields) {
  boost::json::object line;
  line["ts"] = boost::json::string_view(timestamp.data(), timestamp.size());
  line["level"] = kLevelNames[static_cast<int>(level)];
  line["process"] = boost::json::string_view(process.data(), process.size());
  line["event"] = boost::json::string_view(event.data(), event.size());
  for (const LogField& field : fields) {
    boost::json::value& slot =
        line[boost::json::string_view(field.key().data(), field.key().size())];
    std::visit(
        [&slot](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
            slot = AsciiSafe(value);
          } else {
            slot = value;
          }
        },
        field.value());
  }
  return PlainJson(line);
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  const spdlog::level::level_enum spdlog_level = kSpdlogLevels[static_cast<int>(level)];
  if (!Logger().should_log(spdlog_level)) return;
  const std::string now =
      absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  Logger().log(spdlog_level, "{}", FormatLogLine(now, level, ProcessName(), event, fields));
}

}  // namespace tokenrouter
