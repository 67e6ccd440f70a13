// The cost of loading a model: seconds and memory, with the cache of packed weights cold and warm.
//   engine_load_bench --model=FILE [--format=int4] [--weight_cache=FOLDER|off] [--warm_starts=2]
// Prints a JSON row per start, each in a separate process: seconds until the engine can step,
// peak of the process's memory and, at the end, its own and its mapped memory in MB. The first
// start is cold when FOLDER does not have the model; model files should be in the page cache.
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>

#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "libs/timing/real_clock.h"
#include "libs/torch_engine/torch_engine.h"
#include "tests/bench/measure/bench_parts.h"
#include "tests/bench/measure/process_usage.h"

namespace tokenrouter {
namespace {

struct Options {
  std::string model;
  std::string format = "int8";
  std::string weight_cache = "off";
  int32_t threads = 0;
  int32_t warm_starts = 2;
};

absl::Status Load(const Options& options, const char* start_name) {
  TorchEngineOptions engine_options;
  engine_options.model_path = options.model;
  TR_ASSIGN_OR_RETURN(engine_options.weight_format, ParseWeightFormat(options.format));
  engine_options.threads = options.threads;
  engine_options.compute_nice = 0;
  if (options.weight_cache != "off") engine_options.weight_cache = options.weight_cache;
  const absl::Time start = RealClock::Get().Now();
  TR_ASSIGN_OR_RETURN(const auto engine, TorchEngine::Create(engine_options));
  const absl::Time ready = RealClock::Get().Now();
  TR_ASSIGN_OR_RETURN(const ProcessUsage usage, ReadProcessUsage(getpid()));
  std::cout << boost::json::serialize(boost::json::object{
                   {"bench", "engine_load"},
                   {"model", options.model.substr(options.model.rfind('/') + 1)},
                   {"format", options.format},
                   {"start", start_name},
                   {"seconds", absl::ToDoubleSeconds(ready - start)},
                   {"peak_mb", std::lround(usage.peak_mb)},
                   {"own_mb", std::lround(usage.own_mb)},
                   {"mapped_mb", std::lround(usage.mapped_mb)}})
            << std::endl;
  return absl::OkStatus();
}

// Runs in a separate process, so that nothing of an earlier start counts.
absl::Status LoadInChild(const Options& options, const char* start_name) {
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = Load(options, start_name);
    if (!status.ok()) std::cerr << status << "\n";
    _exit(status.ok() ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  int result = 0;
  if (child < 0 || waitpid(child, &result, 0) != child || result != 0) {
    return absl::InternalError("a start failed");
  }
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Options options;
  Settings settings("engine_load_bench", "Time and memory that loading a model takes");
  settings.Add("model", &options.model, "model file or folder");
  settings.AddChoice("format", &options.format, {"int8", "int4", "fp32"}, "weight format");
  settings.Add("weight_cache", &options.weight_cache, "folder of packed weights, or off");
  settings.Add("threads", &options.threads, 0, 256, "compute threads; 0: one per core");
  settings.Add("warm_starts", &options.warm_starts, 0, 100, "starts after the first");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  TR_RETURN_IF_ERROR(LoadInChild(options, "first"));
  for (int i = 0; i < options.warm_starts; ++i) {
    TR_RETURN_IF_ERROR(LoadInChild(options, "later"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
