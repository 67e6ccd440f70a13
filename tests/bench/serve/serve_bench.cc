// The real pair through the four real binaries, at several numbers of clients, the systems'
// bursts interleaved (A B C D D C B A ...). Rows per (system, algorithm, clients), decode-only and
// end-to-end apart, and the controller's ratio to the others with its 95 % interval.
//   serve_bench --small=A.gguf --large=B.gguf [--clients=1,2,4,8,16] [--rounds=4]
//       [--requests=1] [--new_tokens=128]  of each client and burst; of each request
//
//   large_alone  the same engine and processes in large-only service
//   routed       the algorithm alone decides which side decodes
//   controller   the scheduler chooses between the two
//   greedy       routed, on a scheduler that lets nothing wait
//   small_alone  with --small_alone
//   core_each    with --core_each: routed, without leases; each worker has one thread
// Before its bursts count, the controller has served two of them at this number of clients.
// The bound is the rate of the best threshold on step curves that are measured between the bursts,
// since the machine's memory changes its speed by the minute.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/torch_engine.h"
#include "tests/bench/measure/bench_parts.h"
#include "tests/bench/serve/measured_curve.h"
#include "tests/bench/serve/serve_cell.h"
#include "tests/support/cluster.h"
#include "tools/simulate/paired_ratio.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int kContext = 128;  // Of the measured curves: prompt plus half of the answer.
constexpr int kRepeats = 3;
constexpr int kWarmBursts = 2;  // Of the controller.
constexpr int kMostClients = 256;

struct Options {
  std::string small, large;
  std::vector<int32_t> clients = {1, 2, 4, 8, 16};
  std::string weight_format = "int8";
  int32_t requests = 1;
  int32_t new_tokens = 128;
  int32_t rounds = 4;
  int32_t threads = 2;
  bool small_alone = false;
  bool core_each = false;
  std::string algorithm = "both";
};

BurstOptions BurstOf(const Options& options, int clients, int first_prompt) {
  return {.clients = clients,
          .requests = options.requests,
          .new_tokens = options.new_tokens,
          .first_prompt = first_prompt};
}

struct Algorithm {
  const char* key;
  const char* name;
  json::object routing;
};

std::vector<Algorithm> Algorithms() {
  return {{"random", "random(0.1)", {{"algorithm", "random"}, {"p", 0.1}}},
          {"entropy", "entropy(0.45)", {{"algorithm", "entropy"}, {"threshold", 0.45}}}};
}

json::object With(json::object routing, const char* service_mode) {
  routing["service_mode"] = service_mode;
  return routing;
}

// Clusters of one algorithm. A controller learns from its own load only: it has its own cluster,
// and both are restarted for each algorithm.
struct Clusters {
  std::unique_ptr<Cluster> plain, controller, greedy, core_each;  // The last may be missing.
};

std::vector<ServedSystem> Systems(const Clusters& clusters, const Algorithm& algorithm,
                                  bool small_alone) {
  Cluster* const plain = clusters.plain.get();
  std::vector<ServedSystem> systems = {
      {"controller", algorithm.name, algorithm.routing, clusters.controller.get(),
       /*one_mode=*/false},
      {"routed", algorithm.name, With(algorithm.routing, "routed"), plain},
      {"large_alone", "always", {{"algorithm", "always"}}, plain},
      {"greedy", algorithm.name, With(algorithm.routing, "routed"), clusters.greedy.get()}};
  if (clusters.core_each != nullptr) {
    systems.push_back(
        {"core_each", algorithm.name, With(algorithm.routing, "routed"), clusters.core_each.get()});
  }
  if (small_alone) systems.push_back({"small_alone", "never", {{"algorithm", "never"}}, plain});
  return systems;
}

// Both models in this process, to measure the current cost of their steps.
class Curves {
 public:
  static absl::StatusOr<Curves> Load(const Options& options) {
    Curves curves;
    for (const std::string& model : {options.small, options.large}) {
      TorchEngineOptions engine{.model_path = model, .threads = options.threads};
      TR_ASSIGN_OR_RETURN(engine.weight_format, ParseWeightFormat(options.weight_format));
      Side side{.model = model, .engine = {}, .meter = {}};
      TR_ASSIGN_OR_RETURN(side.engine, TorchEngine::Create(engine));
      TR_ASSIGN_OR_RETURN(side.meter, CurveMeter::Fill(side.engine.get(), kContext));
      curves.sides_.push_back(std::move(side));
    }
    return curves;
  }

  // Adds a share of the current costs of small and large.
  absl::Status AddTo(MeasuredCurve curves[2], double share) {
    for (size_t i = 0; i < sides_.size(); ++i) {
      TR_ASSIGN_OR_RETURN(const MeasuredCurve now, sides_[i].meter->Measure(kRepeats));
      curves[i].Add(now, share);
    }
    return absl::OkStatus();
  }

  void Print(const MeasuredCurve curves[2]) const {
    for (size_t i = 0; i < sides_.size(); ++i) {
      for (const auto& [ids, ms] : curves[i].one_row) Print(sides_[i].model, 1, ids, ms);
      for (const auto& [rows, ms] : curves[i].one_id) Print(sides_[i].model, rows, rows, ms);
    }
  }

 private:
  static void Print(const std::string& model, int64_t rows, int64_t ids, double ms) {
    std::cout
        << json::serialize(json::object{
               {"bench", "curve"}, {"model", model}, {"rows", rows}, {"ids", ids}, {"ms", ms}})
        << std::endl;
  }

  struct Side {
    std::string model;
    std::unique_ptr<TorchEngine> engine;
    std::unique_ptr<CurveMeter> meter;
  };
  std::vector<Side> sides_;
};

// The controller's rate over another system's, burst by burst.
struct Ratios {
  PairedRatio decode, end_to_end;
};

json::object Interval(const PairedRatio& ratio) {
  json::object object = {{"ratio", ratio.Mean()}};
  if (ratio.count() > 1) {
    object["ci95"] =
        json::array{ratio.Mean() - ratio.HalfWidth95(), ratio.Mean() + ratio.HalfWidth95()};
  }
  return object;
}

absl::Status RunClients(const Options& options, const std::vector<ServedSystem>& systems,
                        Curves* steps, int clients) {
  std::vector<ServeCell> cells(systems.size());
  std::vector<Ratios> ratios(systems.size());
  MeasuredCurve curves[2];
  for (int burst = 0; burst < kWarmBursts; ++burst) {
    TR_RETURN_IF_ERROR(ServeCell().Add(systems[0], BurstOf(options, clients, /*first_prompt=*/0)));
  }
  for (int round = 0; round < options.rounds; ++round) {
    TR_RETURN_IF_ERROR(steps->AddTo(curves, 1.0 / options.rounds));
    for (size_t i = 0; i < systems.size(); ++i) {
      const size_t turn = round % 2 == 0 ? i : systems.size() - 1 - i;
      TR_RETURN_IF_ERROR(
          cells[turn].Add(systems[turn], BurstOf(options, clients, /*first_prompt=*/round)));
    }
    for (size_t i = 1; i < systems.size(); ++i) {
      if (cells[0].last_decode_per_s() > 0 && cells[i].last_decode_per_s() > 0) {
        ratios[i].decode.Add(cells[0].last_decode_per_s(), cells[i].last_decode_per_s());
      }
      ratios[i].end_to_end.Add(cells[0].last_tokens_per_s(), cells[i].last_tokens_per_s());
    }
  }
  steps->Print(curves);
  for (size_t i = 0; i < systems.size(); ++i) {
    std::cout << json::serialize(cells[i].Row(systems[i], clients, curves)) << std::endl;
  }
  for (size_t i = 1; i < systems.size(); ++i) {
    const json::object row = {{"bench", "serve_ratio"},
                              {"algorithm", systems[0].algorithm},
                              {"clients", clients},
                              {"system", systems[0].name},
                              {"over", systems[i].name},
                              {"decode", Interval(ratios[i].decode)},
                              {"end_to_end", Interval(ratios[i].end_to_end)}};
    std::cout << json::serialize(row) << std::endl;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Cluster>> StartCluster(const Options& options,
                                                      std::vector<std::string> scheduler_flags,
                                                      bool core_each = false) {
  std::vector<std::string> worker_flags = {"--weight_format=" + options.weight_format,
                                           "--prefix_cache=false"};  // Bursts repeat their prompts.
  worker_flags.push_back(absl::StrCat("--threads=", core_each ? 1 : options.threads));
  if (!core_each) worker_flags.push_back("--device_key=cpu");
  return Cluster::Start({.tokenizer = options.small,
                         .worker_flags = std::move(worker_flags),
                         .small_flags = {"--model=" + options.small},
                         .large_flags = {"--model=" + options.large},
                         .scheduler_flags = std::move(scheduler_flags)});
}

absl::Status RunAlgorithm(const Options& options, const Algorithm& algorithm, Curves* curves) {
  Clusters clusters;
  TR_ASSIGN_OR_RETURN(clusters.controller, StartCluster(options, {}));
  TR_ASSIGN_OR_RETURN(clusters.plain, StartCluster(options, {}));
  TR_ASSIGN_OR_RETURN(clusters.greedy, StartCluster(options, {"--batching=greedy"}));
  if (options.core_each) {
    TR_ASSIGN_OR_RETURN(clusters.core_each, StartCluster(options, {}, /*core_each=*/true));
  }
  const std::vector<ServedSystem> systems = Systems(clusters, algorithm, options.small_alone);
  for (const ServedSystem& system : systems) {  // Weights are paged in, rates are learned.
    TR_RETURN_IF_ERROR(
        ServeCell().Add(system, BurstOf(options, /*clients=*/1, /*first_prompt=*/0)));
  }
  for (const int count : options.clients) {
    TR_RETURN_IF_ERROR(RunClients(options, systems, curves, count));
  }
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Options options;
  Settings settings("serve_bench", "The real pair through the real binaries");
  settings.Add("small", &options.small, "model of the small worker");
  settings.Add("large", &options.large, "model of the large worker");
  settings.Add("clients", &options.clients, 1, kMostClients, "list of numbers of clients");
  settings.AddChoice("weight_format", &options.weight_format, {"int8", "int4", "fp32"},
                     "of both workers");
  settings.Add(
      "requests", &options.requests, 1, 100,
      "of each client in a burst, one after the other; with one, a burst lasts as long as its "
      "slowest answer");
  settings.Add("new_tokens", &options.new_tokens, 2, 4096, "tokens per answer");
  settings.Add("rounds", &options.rounds, 1, 100, "bursts per cell, interleaved over the systems");
  settings.Add("threads", &options.threads, 1, 256, "compute threads of each worker");
  settings.AddChoice("algorithm", &options.algorithm, {"both", "random", "entropy"}, "that routes");
  settings.Add("core_each", &options.core_each, "also routed without leases, a core each");
  settings.Add("small_alone", &options.small_alone, "also the small model alone");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  TR_ASSIGN_OR_RETURN(Curves curves, Curves::Load(options));
  for (const Algorithm& algorithm : Algorithms()) {
    if (options.algorithm != "both" && options.algorithm != algorithm.key) continue;
    TR_RETURN_IF_ERROR(RunAlgorithm(options, algorithm, &curves));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
