#include "tests/bench/engine_extend_part.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "libs/status/status_macros.h"
#include "tests/bench/engine_cell.h"
#include "tests/bench/engine_decode_part.h"
#include "tests/bench/engine_gemm_rate.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int kNewIds[] = {8, 16, 32, 64};
constexpr int kMostRows = 16;
constexpr double kGiga = 1e9;
constexpr double kMillisecondsPerSecond = 1e3;

absl::StatusOr<std::vector<GemmRate>> PrintGemmRates(const EngineBenchOptions& options,
                                                     const std::string& model,
                                                     const ModelDescription& description) {
  TR_ASSIGN_OR_RETURN(auto rates, MeasureGemmRates(description, options.threads, options.rounds));
  for (const GemmRate& rate : rates) {
    PrintRow({{"bench", "engine"},
              {"part", "gemm"},
              {"library", rate.library},
              {"model", std::filesystem::path(model).stem().string()},
              {"tokens", rate.tokens},
              {"gflops_per_s", Rounded(rate.flops_per_s / kGiga)},
              {"threads", options.threads}});
  }
  return rates;
}

// Among those of the largest number of tokens up to `tokens`, or of all when it is 0.
// REQUIRES: rates not empty, in ascending order of tokens.
GemmRate BestGemm(const std::vector<GemmRate>& rates, int tokens) {
  GemmRate best = rates.front();
  for (const GemmRate& rate : rates) {
    if (tokens > 0 && rate.tokens > tokens) break;
    const bool other_size = tokens > 0 && rate.tokens > best.tokens;
    if (other_size || rate.flops_per_s > best.flops_per_s) best = rate;
  }
  return best;
}

// What all cells of a model in a format share.
struct Passes {
  const EngineBenchOptions& options;
  const std::string& model;
  const EnginePair& pair;
  std::vector<GemmRate> gemm_rates;
};

absl::Status MeasureCell(const Passes& passes, int rows, int context, int ids) {
  const auto engines = passes.pair.all();
  std::vector<Rates> found(engines.size());
  OthersMeter others(passes.pair.processes());
  TR_RETURN_IF_ERROR(others.Start());
  TR_RETURN_IF_ERROR(TakeTurns(passes.options.rounds, passes.pair, [&](size_t i) -> absl::Status {
    TR_ASSIGN_OR_RETURN(const double ms, engines[i]->Extend(rows, context, ids));
    found[i].per_s.push_back(rows * ids * kMillisecondsPerSecond / ms);
    return absl::OkStatus();
  }));
  TR_ASSIGN_OR_RETURN(const double others_share, others.Stop());
  const LinearWork work(passes.pair.ours->model());
  const GemmRate best = BestGemm(passes.gemm_rates, 0);
  const GemmRate best_of_tokens = BestGemm(passes.gemm_rates, rows * ids);
  const double flops_per_id = 2 * (work.per_token + work.per_choice / ids);
  for (size_t i = 0; i < engines.size(); ++i) {
    const double flops_per_s = found[i].Middle() * flops_per_id;
    json::object row = RowStart("extend", *engines[i], passes.model);
    row["rows"] = rows;
    row["context"] = context;
    row["new_ids_per_row"] = ids;
    row["ids_per_s"] = Rounded(found[i].Middle());
    row["ids_low"] = Rounded(found[i].Low());
    row["ids_high"] = Rounded(found[i].High());
    row["linear_gflops_per_s"] = Rounded(flops_per_s / kGiga);
    row["best_gemm_gflops_per_s"] = Rounded(best.flops_per_s / kGiga);
    row["best_gemm_library"] = best.library;
    row["share_of_best_gemm"] = Rounded(flops_per_s / best.flops_per_s);
    row["share_of_best_gemm_of_tokens"] = Rounded(flops_per_s / best_of_tokens.flops_per_s);
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
  Passes passes{options, model, pair, {}};
  TR_ASSIGN_OR_RETURN(passes.gemm_rates, PrintGemmRates(options, model, pair.ours->model()));
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
