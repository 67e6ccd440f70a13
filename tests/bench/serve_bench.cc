// The real pair through the four real binaries: routed, large model alone and small model alone, at
// several numbers of clients, interleaved. One JSON row per (system, algorithm, clients),
// decode-only and end-to-end apart.
//   serve_bench --small=A.gguf --large=B.gguf [--clients=1,2,4,8,16] [--new_tokens=96] [--rounds=3]
// large_alone is the same engine and the same processes with the algorithm `always`: the large
// model decodes by itself. bound is the rate of the best threshold on the step curves measured in
// this run, with no overhead at all.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libs/config/settings.h"
#include "libs/status/status_macros.h"
#include "libs/torch_engine/torch_engine.h"
#include "tests/bench/measured_curve.h"
#include "tests/bench/serve_load.h"
#include "tests/support/cluster.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int kContext = 128;  // Of the measured curves: prompt plus half of the answer.
constexpr int kRepeats = 7;

struct Options {
  std::string small, large;
  std::string clients = "1,2,4,8,16";
  std::string weight_format = "int8";
  int32_t new_tokens = 96;
  int32_t rounds = 3;
  int32_t threads = 2;
};

struct System {
  const char* name;
  std::string algorithm;
  json::object routing;
};

std::vector<System> Systems() {
  return {{"large_alone", "always", {{"algorithm", "always"}}},
          {"routed", "random(0.1)", {{"algorithm", "random"}, {"p", 0.1}}},
          {"routed", "entropy(0.45)", {{"algorithm", "entropy"}, {"threshold", 0.45}}},
          {"small_alone", "never", {{"algorithm", "never"}}}};
}

// Sums over the bursts of one cell, and the workers' counters over the same time.
struct Cell {
  int tokens = 0, large_tokens = 0;
  double seconds = 0;
  std::vector<double> decode, ttft, tpot;
  double rows[2] = {0, 0}, steps[2] = {0, 0};
  double catch_up_ids = 0;
};

struct Counters {
  double rows[2], steps[2], catch_up;
};

Counters ReadCounters(Cluster* cluster) {
  Counters counters{};
  for (int role = 0; role < 2; ++role) {
    const Member& member = role == 0 ? cluster->small(0) : cluster->large(0);
    counters.rows[role] = Cluster::Metric(member, "tokenrouter_worker_rows_per_step_sum");
    counters.steps[role] = Cluster::Metric(member, "tokenrouter_worker_rows_per_step_count");
  }
  counters.catch_up = Cluster::Metric(cluster->large(0), "tokenrouter_worker_catch_up_ids_total");
  return counters;
}

absl::Status AddBurst(Cluster* cluster, const System& system, const Options& options, int clients,
                      int round, Cell* cell) {
  const Counters before = ReadCounters(cluster);
  TR_ASSIGN_OR_RETURN(const Burst burst, RunBurst({.http_port = cluster->gateway().port,
                                                   .clients = clients,
                                                   .new_tokens = options.new_tokens,
                                                   .first_prompt = round,
                                                   .routing = system.routing}));
  const Counters after = ReadCounters(cluster);
  cell->tokens += burst.tokens;
  cell->large_tokens += burst.large_tokens;
  cell->seconds += burst.seconds;
  cell->decode.push_back(burst.decode_tokens_per_s);
  cell->ttft.insert(cell->ttft.end(), burst.ttft_ms.begin(), burst.ttft_ms.end());
  cell->tpot.insert(cell->tpot.end(), burst.tpot_ms.begin(), burst.tpot_ms.end());
  for (int role = 0; role < 2; ++role) {
    cell->rows[role] += after.rows[role] - before.rows[role];
    cell->steps[role] += after.steps[role] - before.steps[role];
  }
  cell->catch_up_ids += after.catch_up - before.catch_up;
  return absl::OkStatus();
}

double Bound(const MeasuredCurve curves[2], double large_share, int clients) {
  if (large_share <= 0) return 1000.0 * clients / curves[0].Milliseconds(clients, clients);
  if (large_share >= 1) return 1000.0 * clients / curves[1].Milliseconds(clients, clients);
  return BestSharedRate(curves[0], curves[1], clients, large_share);
}

void Print(const System& system, const Cell& cell, int clients, const MeasuredCurve curves[2]) {
  const double share = static_cast<double>(cell.large_tokens) / cell.tokens;
  const double decode = Percentile(cell.decode, 0.5);
  const double bound = Bound(curves, share, clients);
  const json::object row = {
      {"bench", "serve"},
      {"system", system.name},
      {"clients", clients},
      {"algorithm", system.algorithm},
      {"tokens_per_s", cell.tokens / cell.seconds},
      {"decode_tokens_per_s", decode},
      {"ttft_ms_p50", Percentile(cell.ttft, 0.5)},
      {"ttft_ms_p99", Percentile(cell.ttft, 0.99)},
      {"tpot_ms_p50", Percentile(cell.tpot, 0.5)},
      {"tpot_ms_p99", Percentile(cell.tpot, 0.99)},
      {"large_share", share},
      {"mean_batch_small", cell.steps[0] > 0 ? cell.rows[0] / cell.steps[0] : 0},
      {"mean_batch_large", cell.steps[1] > 0 ? cell.rows[1] / cell.steps[1] : 0},
      {"catch_up_ids", cell.catch_up_ids},
      {"bound", bound},
      {"share_of_bound", decode / bound}};
  std::cout << json::serialize(row) << std::endl;
}

absl::StatusOr<MeasuredCurve> CurveOf(const Options& options, const std::string& model) {
  TorchEngineOptions engine_options{.model_path = model, .threads = options.threads};
  TR_ASSIGN_OR_RETURN(engine_options.weight_format, ParseWeightFormat(options.weight_format));
  TR_ASSIGN_OR_RETURN(const auto engine, TorchEngine::Create(engine_options));
  TR_ASSIGN_OR_RETURN(MeasuredCurve curve, MeasureCurve(engine.get(), kContext, kRepeats));
  for (const auto& [ids, ms] : curve.one_row) {
    std::cout << json::serialize(json::object{
                     {"bench", "curve"}, {"model", model}, {"rows", 1}, {"ids", ids}, {"ms", ms}})
              << std::endl;
  }
  for (const auto& [rows, ms] : curve.one_id) {
    std::cout
        << json::serialize(json::object{
               {"bench", "curve"}, {"model", model}, {"rows", rows}, {"ids", rows}, {"ms", ms}})
        << std::endl;
  }
  return curve;
}

absl::Status RunClients(Cluster* cluster, const Options& options, int clients,
                        const MeasuredCurve curves[2]) {
  const std::vector<System> systems = Systems();
  std::vector<Cell> cells(systems.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < systems.size(); ++i) {
      TR_RETURN_IF_ERROR(AddBurst(cluster, systems[i], options, clients, round, &cells[i]));
    }
  }
  for (size_t i = 0; i < systems.size(); ++i) Print(systems[i], cells[i], clients, curves);
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Options options;
  Settings settings("serve_bench", "The real pair through the real binaries");
  settings.Add("small", &options.small, "model of the small worker");
  settings.Add("large", &options.large, "model of the large worker");
  settings.Add("clients", &options.clients, "comma-separated numbers of clients");
  settings.AddChoice("weight_format", &options.weight_format, {"int8", "fp32"}, "of both workers");
  settings.Add("new_tokens", &options.new_tokens, 2, 4096, "tokens per answer");
  settings.Add("rounds", &options.rounds, 1, 100, "bursts per cell, interleaved over the systems");
  settings.Add("threads", &options.threads, 1, 256, "compute threads of each worker");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  MeasuredCurve curves[2];
  TR_ASSIGN_OR_RETURN(curves[0], CurveOf(options, options.small));
  TR_ASSIGN_OR_RETURN(curves[1], CurveOf(options, options.large));
  TR_ASSIGN_OR_RETURN(const auto cluster,
                      Cluster::Start({.tokenizer = options.small,
                                      .worker_flags = {"--weight_format=" + options.weight_format,
                                                       "--device_key=cpu",
                                                       absl::StrCat("--threads=", options.threads)},
                                      .small_flags = {"--model=" + options.small},
                                      .large_flags = {"--model=" + options.large}}));
  for (const auto text : absl::StrSplit(options.clients, ',')) {
    int clients = 0;
    if (!absl::SimpleAtoi(text, &clients) || clients < 1)
      return absl::InvalidArgumentError("--clients: not a list of numbers");
    TR_RETURN_IF_ERROR(RunClients(cluster.get(), options, clients, curves));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) {
  const absl::Status status = tokenrouter::Run(argc, argv);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
