// Structured log lines: one JSON object per line on stderr, {"ts", "level", "process", "event",
// fields...}. Logs are for people; machines and tests read metrics. Prompts and generated text are
// never logged. Threads: all functions are thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/status.h"

namespace tokenrouter {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// One value of a line. Strings are escaped; invalid UTF-8 is replaced.
using LogValue = std::variant<std::string, int64_t, double, bool>;

class LogField {
 public:
  LogField(std::string_view key, std::string_view value) : key_(key), value_(std::string(value)) {}
  LogField(std::string_view key, const char* value) : key_(key), value_(std::string(value)) {}
  LogField(std::string_view key, const std::string& value) : key_(key), value_(value) {}
  LogField(std::string_view key, const absl::Status& status)
      : key_(key), value_(status.ToString()) {}
  LogField(std::string_view key, bool value) : key_(key), value_(value) {}
  LogField(std::string_view key, double value) : key_(key), value_(value) {}
  template <typename Integer>
  requires std::is_integral_v<Integer> LogField(std::string_view key, Integer value)
      : key_(key), value_(static_cast<int64_t>(value)) {}

  std::string_view key() const { return key_; }
  const LogValue& value() const { return value_; }

 private:
  std::string_view key_;
  LogValue value_;
};

// Call once at start. `process` names the binary; `level` is debug, info, warning or error.
// INVALID_ARGUMENT for another level.
absl::Status InitLog(std::string_view process, std::string_view level);

// `event` is a stable snake_case name, e.g. "worker_attached".
void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

inline void LogInfo(std::string_view event, std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kInfo, event, fields);
}
inline void LogWarning(std::string_view event, std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kWarning, event, fields);
}
inline void LogError(std::string_view event, std::initializer_list<LogField> fields = {}) {
  Log(LogLevel::kError, event, fields);
}

// The line without its newline; exposed for tests.
std::string FormatLogLine(std::string_view timestamp, LogLevel level, std::string_view process,
                          std::string_view event, std::initializer_list<LogField> fields);

}  // namespace tokenrouter
