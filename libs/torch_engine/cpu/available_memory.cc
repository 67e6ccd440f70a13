#include "libs/torch_engine/cpu/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace tokenrouter {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

int64_t MachineBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  for (int64_t kib = 0; file >> key >> kib; file.ignore(64, '\n')) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return kUnknown;
}

// The memory left to the control group that the root of /sys/fs/cgroup shows, as in a container
// (version 2). Page
// cache counts as used there although it can be dropped, so `inactive_file` is added back.
int64_t ControlGroupBytes() {
  std::ifstream limit_file("/sys/fs/cgroup/memory.max");
  std::ifstream used_file("/sys/fs/cgroup/memory.current");
  int64_t limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return kUnknown;
  std::ifstream statistics("/sys/fs/cgroup/memory.stat");
  std::string key;
  for (int64_t value = 0; statistics >> key >> value;) {
    if (key == "inactive_file") used -= value;
  }
  return std::max<int64_t>(0, limit - used);
}

}  // namespace

int64_t AvailableMemoryBytes() { return std::min(MachineBytes(), ControlGroupBytes()); }

absl::Status RequireAvailableMemory(int64_t bytes, std::string_view what) {
  const int64_t available = AvailableMemoryBytes();
  if (bytes <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      bytes >> 20, " MiB are needed for ", absl::string_view(what.data(), what.size()), ", but ",
      available >> 20,
      " MiB are available; give less kv_bytes, use a smaller model or stop other processes"));
}

}  // namespace tokenrouter
