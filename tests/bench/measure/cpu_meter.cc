#include "tests/bench/measure/cpu_meter.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

constexpr int kIdleFields[] = {3, 4};  // idle and iowait.
constexpr int kMachineFields = 8;      // Up to steal; guest time is part of user time.
constexpr int kFieldsBeforeUser = 11;  // Of /proc/PID/stat, after the name.

absl::StatusOr<double> UsedTicks(pid_t process) {
  const std::string path = absl::StrCat("/proc/", process, "/stat");
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (!file || name_end == std::string::npos) {
    return absl::InternalError(absl::StrCat(path, " cannot be read"));
  }
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < kFieldsBeforeUser; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

}  // namespace

absl::StatusOr<CpuMeter::Reading> CpuMeter::Read() const {
  Reading reading;
  std::ifstream file("/proc/stat");
  std::string cpu;
  file >> cpu;
  for (int i = 0; i < kMachineFields; ++i) {
    double ticks = 0;
    file >> ticks;
    reading.total += ticks;
    if (std::count(std::begin(kIdleFields), std::end(kIdleFields), i) > 0) reading.idle += ticks;
  }
  if (!file) return absl::InternalError("/proc/stat cannot be read");
  for (const pid_t process : processes_) {
    TR_ASSIGN_OR_RETURN(const double used, UsedTicks(process));
    reading.used.push_back(used);
  }
  return reading;
}

absl::Status CpuMeter::Start() {
  TR_ASSIGN_OR_RETURN(start_, Read());
  return absl::OkStatus();
}

absl::Status CpuMeter::Stop() {
  TR_ASSIGN_OR_RETURN(const Reading end, Read());
  idle_share_ = (end.idle - start_.idle) / std::max(1.0, end.total - start_.total);
  const double us_per_tick = 1e6 / static_cast<double>(sysconf(_SC_CLK_TCK));
  used_us_.clear();
  for (size_t i = 0; i < processes_.size(); ++i) {
    used_us_.push_back((end.used[i] - start_.used[i]) * us_per_tick);
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
