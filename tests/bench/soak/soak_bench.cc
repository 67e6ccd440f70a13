// Runs a mixed load on the four real processes for a long time and checks that their memory stays
// flat and that the answers never change.
//   soak_bench --small=A.gguf --large=B.gguf [--minutes=30] [--clients=4] [--engine=torch]
// The load: soak_requests.h and soak_load.h, on KV pools too small for it. --engine=timed replaces
// the models by hash tokens at once: the same for the other parts, many more requests.
// Rows: per minute what was served, and memory, threads and files of each process (means of the
// minute); at the end per process memory after warming up and in the last minute, and its growth
// per hour with the 95 % interval. Memory is only reported. The exit code is not 0 when an answer
// differed, when something failed that was not cancelled, or when KV blocks stayed in use.
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "tests/bench/measure/bench_parts.h"
#include "tests/bench/measure/cpu_meter.h"
#include "tests/bench/measure/growth.h"
#include "tests/bench/measure/process_usage.h"
#include "tests/bench/soak/soak_load.h"
#include "tests/support/cluster.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr absl::Duration kSampleInterval = absl::Seconds(2);
constexpr double kMinutesPerHour = 60;
constexpr const char* kUsedBlocks = "tokenrouter_worker_kv_blocks{state=\"used\"}";

struct Options {
  std::string small, large;
  std::string engine = "torch";
  std::string weight_format = "int8";
  double minutes = 30;
  double warm_up_minutes = 5;
  int32_t clients = 4;
  int32_t threads = 2;
  int32_t small_kv_mb = 64;
  int32_t large_kv_mb = 144;
  int64_t seed = 1;
};

constexpr int kProcesses = 4;

struct Watched {
  const char* name;
  Member* member;
};

std::array<Watched, kProcesses> WatchedOf(Cluster* cluster) {
  return {{{"gateway", &cluster->gateway()},
           {"scheduler", &cluster->scheduler()},
           {"small_worker", &cluster->small(0)},
           {"large_worker", &cluster->large(0)}}};
}

absl::StatusOr<std::unique_ptr<Cluster>> StartCluster(const Options& options) {
  const auto kv = [](int megabytes) {
    return absl::StrCat("--kv_bytes=", int64_t{megabytes} << 20);
  };
  ClusterOptions cluster{.tokenizer = options.small,
                         .worker_flags = {"--engine=" + options.engine},
                         .small_flags = {kv(options.small_kv_mb)},
                         .large_flags = {kv(options.large_kv_mb)}};
  const auto add = [&](std::vector<std::string> flags) {
    cluster.worker_flags.insert(cluster.worker_flags.end(), flags.begin(), flags.end());
  };
  if (options.engine == "torch") {
    add({"--weight_format=" + options.weight_format, absl::StrCat("--threads=", options.threads),
         "--device_key=cpu"});
    cluster.small_flags.push_back("--model=" + options.small);
    cluster.large_flags.push_back("--model=" + options.large);
  } else {
    add({"--timed_curve=instant", "--tokenizer=" + options.small});
  }
  return Cluster::Start(std::move(cluster));
}

double Rounded(double value) { return std::round(value * 1e3) / 1e3; }

void Print(const json::object& row) { std::cout << json::serialize(row) << std::endl; }

// The usage of one process, in means over spans of about a minute.
class UsageHistory {
 public:
  absl::Status Sample(pid_t process) {
    TR_ASSIGN_OR_RETURN(last_, ReadProcessUsage(process));
    sum_rss_ += last_.rss_mb;
    sum_own_ += last_.own_mb;
    ++samples_;
    return absl::OkStatus();
  }

  json::object EndSpan(double minute) {
    minutes_.push_back(minute);
    rss_.push_back(sum_rss_ / samples_);
    own_.push_back(sum_own_ / samples_);
    sum_rss_ = sum_own_ = samples_ = 0;
    return {{"rss_mb", Rounded(rss_.back())},
            {"own_mb", Rounded(own_.back())},
            {"mapped_mb", Rounded(last_.mapped_mb)},
            {"peak_mb", Rounded(last_.peak_mb)},
            {"threads", last_.threads},
            {"files", last_.files}};
  }

  // Of the spans that began after `warm_up_minutes`; REQUIRES: one at least.
  json::object Summary(double warm_up_minutes) const {
    size_t first = 0;
    while (first + 1 < minutes_.size() && (first == 0 || minutes_[first - 1] < warm_up_minutes)) {
      ++first;
    }
    const auto growth = [&](const std::vector<double>& values) {
      return GrowthOf(std::span(minutes_).subspan(first), std::span(values).subspan(first));
    };
    const Growth rss = growth(rss_), own = growth(own_);
    json::object row = {{"warm_rss_mb", Rounded(rss_[first])},
                        {"end_rss_mb", Rounded(rss_.back())},
                        {"peak_mb", Rounded(last_.peak_mb)},
                        {"rss_mb_per_hour", Rounded(rss.slope * kMinutesPerHour)},
                        {"own_mb_per_hour", Rounded(own.slope * kMinutesPerHour)},
                        {"spans", minutes_.size() - first},
                        {"threads", last_.threads},
                        {"files", last_.files}};
    if (std::isfinite(rss.half_width95)) {
      row["rss_half_width95"] = Rounded(rss.half_width95 * kMinutesPerHour);
      row["own_half_width95"] = Rounded(own.half_width95 * kMinutesPerHour);
    }
    return row;
  }

 private:
  ProcessUsage last_;
  double sum_rss_ = 0, sum_own_ = 0, samples_ = 0;
  std::vector<double> minutes_, rss_, own_;
};

json::object LoadRow(const SoakCounts& counts, Cluster* cluster) {
  const auto metric = [](Member& member, const char* name) {
    return static_cast<int64_t>(Cluster::Metric(member, name));
  };
  return {{"answered", counts.answered},
          {"compared", counts.compared},
          {"differing", counts.differing},
          {"cancelled", counts.cancelled},
          {"refused", counts.refused},
          {"turned_away", counts.turned_away},
          {"failed", counts.failed},
          {"prompt_tokens", counts.prompt_tokens},
          {"tokens", counts.tokens},
          {"large_tokens", counts.large_tokens},
          {"small_blocks_given_up",
           metric(cluster->small(0), "tokenrouter_worker_prefix_evictions_total")},
          {"large_blocks_given_up",
           metric(cluster->large(0), "tokenrouter_worker_prefix_evictions_total")},
          {"large_sides_evicted",
           metric(cluster->scheduler(), "tokenrouter_scheduler_evictions_total")}};
}

// Samples until `end`; a row per process and one of the load every minute.
absl::Status Watch(const Options& options, Cluster* cluster, const SoakLoad& load,
                   std::array<UsageHistory, kProcesses>* histories) {
  const auto watched = WatchedOf(cluster);
  const absl::Time start = absl::Now(), end = start + absl::Minutes(options.minutes);
  const absl::Duration span = std::min(absl::Minutes(1), absl::Minutes(options.minutes));
  absl::Time span_end = start + span;
  while (span_end <= end) {
    absl::SleepFor(std::min(kSampleInterval, span));
    for (int i = 0; i < kProcesses; ++i) {
      TR_RETURN_IF_ERROR((*histories)[i].Sample(watched[i].member->process->pid()));
    }
    if (absl::Now() < span_end) continue;
    const double minute = Rounded(absl::ToDoubleMinutes(span_end - start));
    for (int i = 0; i < kProcesses; ++i) {
      json::object row = {{"bench", "soak"}, {"minute", minute}, {"process", watched[i].name}};
      for (const auto& field : (*histories)[i].EndSpan(minute)) row[field.key()] = field.value();
      Print(row);
    }
    json::object row = {{"bench", "soak_load"}, {"minute", minute}};
    for (const auto& field : LoadRow(load.Counts(), cluster)) row[field.key()] = field.value();
    Print(row);
    span_end += span;
  }
  return absl::OkStatus();
}

absl::Status Check(const SoakLoad& load, Cluster* cluster) {
  if (load.Counts().failed > 0) {
    return absl::InternalError(absl::StrCat(load.Counts().failed, " requests went wrong"));
  }
  for (Member* const worker : {&cluster->small(0), &cluster->large(0)}) {
    if (!Cluster::WaitForMetric(*worker, kUsedBlocks, 0)) {
      return absl::InternalError("KV blocks are in use although no request is");
    }
  }
  return absl::OkStatus();
}

absl::Status Soak(const Options& options) {
  TR_ASSIGN_OR_RETURN(const auto cluster, StartCluster(options));
  const auto watched = WatchedOf(cluster.get());
  std::vector<pid_t> processes;
  for (const Watched& each : watched) processes.push_back(each.member->process->pid());
  CpuMeter meter(processes);
  TR_RETURN_IF_ERROR(meter.Start());
  const absl::Time start = absl::Now();
  std::array<UsageHistory, kProcesses> histories;
  SoakLoad load(cluster->gateway().port, options.clients, static_cast<uint64_t>(options.seed));
  TR_RETURN_IF_ERROR(Watch(options, cluster.get(), load, &histories));
  TR_RETURN_IF_ERROR(meter.Stop());
  const double machine_us =
      absl::ToDoubleMicroseconds(absl::Now() - start) * std::thread::hardware_concurrency();
  load.Stop();
  for (int i = 0; i < kProcesses; ++i) {
    json::object row = {{"bench", "soak_summary"},
                        {"engine", options.engine},
                        {"minutes", options.minutes},
                        {"process", watched[i].name}};
    for (const auto& field : histories[i].Summary(options.warm_up_minutes)) {
      row[field.key()] = field.value();
    }
    row["cpu_share"] = Rounded(meter.used_us(i) / machine_us);
    Print(row);
  }
  return Check(load, cluster.get());
}

absl::Status Run(int argc, char** argv) {
  Options options;
  Settings settings("soak_bench", "Mixed load on the real processes for a long time");
  settings.Add("small", &options.small, "model of the small worker, and the tokenizer");
  settings.Add("large", &options.large, "model of the large worker");
  settings.AddChoice("engine", &options.engine, {"torch", "timed"},
                     "timed: hash tokens at once instead of the models");
  settings.AddChoice("weight_format", &options.weight_format, {"int8", "int4", "fp32"},
                     "torch: of both workers");
  settings.Add("minutes", &options.minutes, 0.1, 100'000, "of load");
  settings.Add("warm_up_minutes", &options.warm_up_minutes, 0, 1000, "that growth does not count");
  settings.Add("clients", &options.clients, 1, 256, "that ask at once");
  settings.Add("threads", &options.threads, 1, 256, "torch: compute threads of each worker");
  settings.Add("small_kv_mb", &options.small_kv_mb, 1, 1 << 20, "KV memory of the small worker");
  settings.Add("large_kv_mb", &options.large_kv_mb, 1, 1 << 20, "KV memory of the large worker");
  settings.Add("seed", &options.seed, 0, int64_t{1} << 62, "of what the clients choose");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  return Soak(options);
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
