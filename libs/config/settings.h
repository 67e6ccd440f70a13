// Settings fills a process's options struct from flags, environment and one config file, in that
// order of precedence:
//   --threads=4   TOKENROUTER_THREADS=4   [small_worker] threads = 4   (INI/TOML file named by
//   --config)
// Only the keys that several processes share stand before the first section: log_level, pair,
// scheduler; a section overrides them. CLI11 does the parsing.
// Ownership: the registered pointers must outlive Parse. Threads: not thread-safe; used
// once at start. Errors: INVALID_ARGUMENT naming where (flag, environment variable, or file and
// key), the value and what is allowed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tokenrouter {

class Settings {
 public:
  // `program` is the name of the process and of its section in the config file.
  Settings(std::string program, std::string summary);
  ~Settings();

  // The value that `value` holds now is the default.
  void Add(const std::string& name, std::string* value, const std::string& help);
  // --name alone is true; --name=true, --name=false, and with a space, as other values.
  void Add(const std::string& name, bool* value, const std::string& help);
  void Add(const std::string& name, int32_t* value, int32_t low, int32_t high,
           const std::string& help);
  void Add(const std::string& name, int64_t* value, int64_t low, int64_t high,
           const std::string& help);
  void Add(const std::string& name, double* value, double low, double high,
           const std::string& help);
  // Lists: values with commas on a flag, an array in the file. The bounds are each value's.
  void Add(const std::string& name, std::vector<int32_t>* values, int32_t low, int32_t high,
           const std::string& help);
  void Add(const std::string& name, std::vector<double>* values, double low, double high,
           const std::string& help);
  void AddChoice(const std::string& name, std::string* value,
                 const std::vector<std::string>& allowed, const std::string& help);

  // False when --help was asked for and printed: the process should exit with 0.
  absl::StatusOr<bool> Parse(int argc, const char* const* argv);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tokenrouter
