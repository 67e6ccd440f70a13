#include "tests/bench/engine/engine_extend_part.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "libs/status/status_macros.h"
#include "tests/bench/engine/engine_bandwidth.h"
#include "tests/bench/engine/engine_cell.h"
#include "tests/bench/engine/engine_decode_part.h"
#include "tests/bench/engine/engine_gemm_rate.h"
#include "tests/bench/engine/engine_ours.h"
#include "tests/bench/measure/percentile.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int kNewIds[] = {8, 16, 32, 64};
constexpr int kMostRows = 16;
constexpr double kGiga = 1e9;
constexpr double kMillisecondsPerSecond = 1e3;

absl::StatusOr<double> PrintGemmRates(const EngineBenchOptions& options, const std::string& model,
                                      GemmMeter* gemm) {
  TR_ASSIGN_OR_RETURN(const auto rates, gemm->MeasureAll(options.rounds));
  double best = 0;
  for (const GemmRate& rate : rates) {
    PrintRow({{"bench", "engine"},
              {"part", "gemm"},
              {"library", rate.library},
              {"model", std::filesystem::path(model).stem().string()},
              {"tokens", rate.tokens},
              {"gflops_per_s", Rounded(rate.flops_per_s / kGiga)},
              {"threads", options.threads}});
    best = std::max(best, rate.flops_per_s);
  }
  return best;
}

// The state that all cells of a model in a format share.
struct Passes {
  const EngineBenchOptions& options;
  const std::string& model;
  const EnginePair& pair;
  GemmMeter* gemm;
  BandwidthMeter* bandwidth;
  double best_flops_per_s;  // Of any library at any size.
};

// The arithmetic of a pass: the layers for `tokens` rows, the output matrix for one row per choice.
struct PassWork {
  PassWork(const OurEngine& ours, int rows, int ids)
      : tokens(rows * ids),
        choices(rows),
        layer_flops(2 * LinearWork(ours.model()).per_token * tokens),
        head_flops(2 * LinearWork(ours.model()).per_choice * choices),
        layer_bytes(ours.weight_bytes() - ours.head_bytes()),
        head_bytes(ours.head_bytes()) {}

  int tokens, choices;
  double layer_flops, head_flops, layer_bytes, head_bytes;
};

// What is measured of the machine in the rounds of a cell, beside the passes themselves.
class Bounds {
 public:
  explicit Bounds(const PassWork& work) : work_(work) {}

  // One round: every library in the pass's shapes, and the bandwidth.
  absl::Status Measure(const Passes& passes) {
    TR_ASSIGN_OR_RETURN(const auto layers, passes.gemm->Measure(work_.tokens));
    TR_ASSIGN_OR_RETURN(const auto head, passes.gemm->Measure(work_.choices));
    names_.resize(layers.size());
    seconds_.resize(layers.size());
    for (size_t i = 0; i < layers.size(); ++i) {
      names_[i] = layers[i].ours ? "" : layers[i].library;
      seconds_[i].push_back(work_.layer_flops / layers[i].flops_per_s +
                            work_.head_flops / head[i].flops_per_s);
    }
    bytes_per_s_.push_back(passes.bandwidth->Pass());
    return absl::OkStatus();
  }

  // `seconds`: of our pass. Shares are of it, though it has attention and all else too.
  void AddTo(double seconds, double best_flops_per_s, json::object* row) const {
    size_t best = names_.size();
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i].empty()) continue;
      if (best == names_.size() || Median(seconds_[i]) < Median(seconds_[best])) best = i;
    }
    if (best < names_.size()) {
      (*row)["best_library_of_shape"] = names_[best];
      (*row)["share_of_best_library_of_shape"] = Rounded(Median(seconds_[best]) / seconds);
    }
    const double bandwidth = Median(bytes_per_s_);
    const double roofline =
        std::max(work_.layer_flops / best_flops_per_s, work_.layer_bytes / bandwidth) +
        std::max(work_.head_flops / best_flops_per_s, work_.head_bytes / bandwidth);
    (*row)["read_gb_per_s"] = Rounded(bandwidth / kGiga);
    (*row)["reading_ms"] =
        Rounded((work_.layer_bytes + work_.head_bytes) / bandwidth * kMillisecondsPerSecond);
    (*row)["share_of_roofline"] = Rounded(roofline / seconds);
  }

 private:
  const PassWork work_;
  std::vector<std::string> names_;            // Empty: ours.
  std::vector<std::vector<double>> seconds_;  // By library, of the rounds.
  std::vector<double> bytes_per_s_;
};

absl::Status MeasureCell(const Passes& passes, int rows, int context, int ids) {
  const auto engines = passes.pair.all();
  const PassWork work(*passes.pair.ours, rows, ids);
  Bounds bounds(work);
  std::vector<Rates> found(engines.size());
  OthersMeter others(passes.pair.processes());
  TR_RETURN_IF_ERROR(others.Start());
  TR_RETURN_IF_ERROR(TakeTurns(passes.options.rounds, passes.pair, [&](size_t i) -> absl::Status {
    TR_ASSIGN_OR_RETURN(const double ms, engines[i]->Extend(rows, context, ids));
    found[i].per_s.push_back(work.tokens * kMillisecondsPerSecond / ms);
    return i == 0 ? bounds.Measure(passes) : absl::OkStatus();
  }));
  TR_ASSIGN_OR_RETURN(const double others_share, others.Stop());
  for (size_t i = 0; i < engines.size(); ++i) {
    const double seconds = work.tokens / found[i].Middle();
    const double flops_per_s = (work.layer_flops + work.head_flops) / seconds;
    json::object row = RowStart("extend", *engines[i], passes.model);
    row["rows"] = rows;
    row["context"] = context;
    row["new_ids_per_row"] = ids;
    row["ids_per_s"] = Rounded(found[i].Middle());
    row["ids_low"] = Rounded(found[i].Low());
    row["ids_high"] = Rounded(found[i].High());
    row["linear_gflops_per_s"] = Rounded(flops_per_s / kGiga);
    row["best_gemm_gflops_per_s"] = Rounded(passes.best_flops_per_s / kGiga);
    row["share_of_best_gemm"] = Rounded(flops_per_s / passes.best_flops_per_s);
    if (i == 0) bounds.AddTo(seconds, passes.best_flops_per_s, &row);
    row["rounds"] = passes.options.rounds;
    row["threads"] = passes.options.threads;
    row["others_cpu_share"] = Rounded(others_share);
    PrintRow(row);
  }
  return absl::OkStatus();
}

absl::Status RunModel(const EngineBenchOptions& options, const std::string& model,
                      const std::string& format) {
  std::vector<int> rows;
  for (const int count : options.rows) {
    if (count <= kMostRows) rows.push_back(count);
  }
  if (rows.empty()) return absl::InvalidArgumentError("--rows: the part extend has 1 to 16");
  const int most_rows = *std::max_element(rows.begin(), rows.end());
  std::vector<int> contexts = options.contexts;
  std::sort(contexts.begin(), contexts.end());
  TR_ASSIGN_OR_RETURN(
      const EnginePair pair,
      StartPair(
          options, model, format,
          {.rows = most_rows, .tokens = contexts.back() + *std::rbegin(kNewIds), .prompt = 0}));
  TR_ASSIGN_OR_RETURN(const auto gemm, GemmMeter::Create(pair.ours->model(), options.threads));
  TR_ASSIGN_OR_RETURN(const auto bandwidth, BandwidthMeter::Create(options.threads));
  TR_ASSIGN_OR_RETURN(const double best, PrintGemmRates(options, model, gemm.get()));
  const Passes passes{options, model, pair, gemm.get(), bandwidth.get(), best};
  for (const int context : contexts) {
    for (MeasuredEngine* engine : pair.all()) {
      TR_RETURN_IF_ERROR(engine->Fill(most_rows, context));
      TR_RETURN_IF_ERROR(engine->Extend(1, context, kNewIds[0]).status());  // Pages come in.
    }
    for (const int count : rows) {
      for (const int ids : kNewIds) TR_RETURN_IF_ERROR(MeasureCell(passes, count, context, ids));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunExtendPart(const EngineBenchOptions& options) {
  for (const std::string& model : options.models) {
    for (const std::string& format : options.formats) {
      TR_RETURN_IF_ERROR(RunModel(options, model, format));
    }
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
