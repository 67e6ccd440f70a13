#include "tests/bench/engine/engine_decode_part.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "libs/status/status_macros.h"
#include "tests/bench/engine/engine_bandwidth.h"
#include "tests/bench/engine/engine_cell.h"
#include "tests/bench/engine/engine_llama.h"
#include "tools/simulate/paired_ratio.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr double kMillisecondsPerSecond = 1e3;
constexpr double kGiga = 1e9;

// One model in one format: what all its cells share.
struct Comparison {
  const EngineBenchOptions& options;
  const std::string& model;
  const EnginePair& pair;
  BandwidthMeter* bandwidth = nullptr;
  std::vector<Rates> prefill;  // By engine, of pair.all().
};

absl::Status MeasurePrefill(Comparison* comparison) {
  const int ids = comparison->options.prompt;
  const auto engines = comparison->pair.all();
  comparison->prefill.resize(engines.size());
  for (MeasuredEngine* engine : engines) {  // Weights are paged in.
    TR_RETURN_IF_ERROR(engine->Prefill(std::min(ids, 64)).status());
  }
  return TakeTurns(comparison->options.rounds, comparison->pair, [&](size_t i) -> absl::Status {
    TR_ASSIGN_OR_RETURN(const double ms, engines[i]->Prefill(ids));
    comparison->prefill[i].per_s.push_back(ids * kMillisecondsPerSecond / ms);
    return absl::OkStatus();
  });
}

json::object RatioOf(const Rates& ours, const Rates& peer) {
  PairedRatio ratio;
  for (size_t i = 0; i < ours.per_s.size(); ++i) ratio.Add(ours.per_s[i], peer.per_s[i]);
  json::object object = {{"ratio", Rounded(ratio.Mean())}};
  if (ratio.count() > 1) {
    object["ci95"] = json::array{Rounded(ratio.Mean() - ratio.HalfWidth95()),
                                 Rounded(ratio.Mean() + ratio.HalfWidth95())};
  }
  return object;
}

json::object RowOf(const Comparison& comparison, size_t engine_index, int rows, int context,
                   const Rates& decode) {
  const MeasuredEngine& engine = *comparison.pair.all()[engine_index];
  const EngineBenchOptions& options = comparison.options;
  const Rates& prefill = comparison.prefill[engine_index];
  const double step_bytes =
      engine.weight_bytes() + engine.kv_bytes_per_token() * rows * (context + options.steps / 2.0);
  json::object row = RowStart("decode", engine, comparison.model);
  row["rows"] = rows;
  row["context"] = context;
  row["decode_tokens_per_s"] = Rounded(decode.Middle());
  row["decode_low"] = Rounded(decode.Low());
  row["decode_high"] = Rounded(decode.High());
  row["prefill_tokens_per_s"] = Rounded(prefill.Middle());
  row["prefill_low"] = Rounded(prefill.Low());
  row["prefill_high"] = Rounded(prefill.High());
  row["share_of_bandwidth"] =
      Rounded(decode.Middle() / rows * step_bytes / comparison.bandwidth->best());
  row["read_gb_per_s"] = Rounded(comparison.bandwidth->best() / kGiga);
  row["rounds"] = options.rounds;
  row["steps"] = options.steps;
  row["prompt"] = options.prompt;
  row["threads"] = options.threads;
  return row;
}

absl::Status MeasureCell(const Comparison& comparison, int rows, int context) {
  const EngineBenchOptions& options = comparison.options;
  const auto engines = comparison.pair.all();
  std::vector<Rates> decode(engines.size());
  OthersMeter others(comparison.pair.processes());
  comparison.bandwidth->Pass();
  TR_RETURN_IF_ERROR(others.Start());
  TR_RETURN_IF_ERROR(TakeTurns(options.rounds, comparison.pair, [&](size_t i) -> absl::Status {
    TR_ASSIGN_OR_RETURN(const double ms, engines[i]->Decode(rows, context, options.steps));
    decode[i].per_s.push_back(rows * options.steps * kMillisecondsPerSecond / ms);
    return absl::OkStatus();
  }));
  TR_ASSIGN_OR_RETURN(const double others_share, others.Stop());
  for (size_t i = 0; i < engines.size(); ++i) {
    json::object row = RowOf(comparison, i, rows, context, decode[i]);
    row["others_cpu_share"] = Rounded(others_share);
    PrintRow(row);
  }
  if (engines.size() < 2) return absl::OkStatus();
  json::object ratio = RowStart("decode_ratio", *engines[0], comparison.model);
  ratio["over"] = engines[1]->name();
  ratio["over_format"] = engines[1]->format();
  ratio["rows"] = rows;
  ratio["context"] = context;
  ratio["decode"] = RatioOf(decode[0], decode[1]);
  ratio["prefill"] = RatioOf(comparison.prefill[0], comparison.prefill[1]);
  ratio["others_cpu_share"] = Rounded(others_share);
  PrintRow(ratio);
  return absl::OkStatus();
}

absl::Status Compare(const EngineBenchOptions& options, const std::string& model,
                     const std::string& format, BandwidthMeter* bandwidth) {
  const int most_rows = *std::max_element(options.rows.begin(), options.rows.end());
  std::vector<int> contexts = options.contexts;
  std::sort(contexts.begin(), contexts.end());  // Longer contexts are filled on top of shorter.
  TR_ASSIGN_OR_RETURN(const EnginePair pair,
                      StartPair(options, model, format,
                                {.rows = most_rows,
                                 .tokens = contexts.back() + options.steps + 1,
                                 .prompt = options.prompt}));
  Comparison comparison{options, model, pair, bandwidth, {}};
  TR_RETURN_IF_ERROR(MeasurePrefill(&comparison));
  for (const int context : contexts) {
    for (MeasuredEngine* engine : pair.all()) {
      TR_RETURN_IF_ERROR(engine->Fill(most_rows, context));
    }
    for (const int rows : options.rows) TR_RETURN_IF_ERROR(MeasureCell(comparison, rows, context));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<MeasuredEngine*> EnginePair::all() const {
  std::vector<MeasuredEngine*> engines = {ours.get()};
  if (peer != nullptr) engines.push_back(peer.get());
  return engines;
}

std::vector<pid_t> EnginePair::processes() const {
  std::vector<pid_t> found;
  for (const MeasuredEngine* engine : all()) found.push_back(engine->process());
  return found;
}

absl::StatusOr<EnginePair> StartPair(const EngineBenchOptions& options, const std::string& model,
                                     const std::string& format, const MeasuredSizes& sizes) {
  EnginePair pair;
  TR_ASSIGN_OR_RETURN(pair.ours,
                      OurEngine::Create(model, format, options.kv_format, options.threads, sizes));
  if (options.peer.empty()) return pair;
  TR_ASSIGN_OR_RETURN(const std::string peer_format, PeerFormatOf(format));
  TR_ASSIGN_OR_RETURN(pair.peer,
                      LlamaEngine::Start(options.peer, model, peer_format, options.threads, sizes));
  return pair;
}

absl::Status TakeTurns(int rounds, const EnginePair& pair,
                       const std::function<absl::Status(size_t)>& use) {
  const size_t count = pair.all().size();
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < count; ++i) {
      TR_RETURN_IF_ERROR(use(round % 2 == 0 ? i : count - 1 - i));
    }
  }
  return absl::OkStatus();
}

absl::Status RunDecodePart(const EngineBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(const auto bandwidth, BandwidthMeter::Create(options.threads));
  for (const std::string& model : options.models) {
    for (const std::string& format : options.formats) {
      TR_RETURN_IF_ERROR(Compare(options, model, format, bandwidth.get()));
    }
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
