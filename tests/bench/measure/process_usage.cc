#include "tests/bench/measure/process_usage.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

absl::StatusOr<ProcessUsage> ReadProcessUsage(pid_t process) {
  constexpr double kKilobytesPerMegabyte = 1024;
  const std::string folder = absl::StrCat("/proc/", process);
  std::ifstream file(folder + "/status");
  std::map<std::string, double> values;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos) {
      values[line.substr(0, colon)] = std::atof(line.c_str() + colon + 1);
    }
  }
  std::error_code error;
  int64_t files = 0;
  for (std::filesystem::directory_iterator entry(folder + "/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    ++files;
  }
  // A process that has ended and was not waited for has a status without memory.
  if (error || !values.contains("VmRSS")) {
    return absl::InternalError(absl::StrCat(folder, " cannot be read: has the process ended?"));
  }
  return ProcessUsage{.rss_mb = values["VmRSS"] / kKilobytesPerMegabyte,
                      .own_mb = values["RssAnon"] / kKilobytesPerMegabyte,
                      .mapped_mb = values["RssFile"] / kKilobytesPerMegabyte,
                      .peak_mb = values["VmHWM"] / kKilobytesPerMegabyte,
                      .threads = static_cast<int64_t>(values["Threads"]),
                      .files = files};
}

}  // namespace tokenrouter
