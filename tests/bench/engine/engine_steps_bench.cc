// Measures steps of the real engine and prints one JSON row per shape:
//   engine_steps_bench --model=FILE [--format=int8] [--threads=2] [--repeats=9]
//       [--shapes=1x1@200,8x1@512] [--kernels=avx2,avx2] [--perf_control=FIFO]
// A shape: rows of the step, x new ids per row, @ context before the step. Each row: these, best
// and median milliseconds, ids per second of the median. With --perf_control only what is timed is
// recorded by a `perf record --delay=-1 --control=fifo:FIFO,FIFO.ack` (tools/flame/flame_graph.py).
// --kernels forces the kernels of another processor: those of all but the linear layers (avx512,
// avx2, scalar) and those of the linear layers (avx512vnni, avxvnni, avx2, xnnpack).
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "libs/config/settings.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/timing/real_clock.h"
#include "libs/torch_engine/torch_engine.h"
#include "tests/bench/measure/bench_parts.h"

namespace tokenrouter {
namespace {

constexpr int kMostRows = 16;
constexpr int kFillIds = 512;  // Per row and step, while a context is filled.
constexpr int kMostStepTokens = 4096;
constexpr TokenId kFirstId = 1000;  // Ordinary text ids of every model.
constexpr int kIdRange = 5000;

struct Shape {
  int rows = 1;
  int new_ids = 1;  // Per row.
  Position context = 0;
};

std::vector<TokenId> Ids(int count, int seed) {
  std::vector<TokenId> ids(count);
  for (int i = 0; i < count; ++i) ids[i] = kFirstId + (i * 7919 + seed * 104729) % kIdRange;
  return ids;
}

// One step of `ids` on each of the rows from `first_row` on.
void Step(Engine* engine, int first_row, int rows, const std::vector<TokenId>& ids, int choices) {
  SamplingContext sampling;
  sampling.parameters.temperature = 0.0f;
  StepBatch batch;
  for (int row = first_row; row < first_row + rows; ++row) {
    const SequenceId sequence{static_cast<uint64_t>(row) + 1};
    batch.rows.push_back({.sequence = sequence,
                          .first = engine->Length(sequence),
                          .new_ids = ids,
                          .choices = choices,
                          .sampling = &sampling});
  }
  StepResult result;
  const absl::Status status = engine->Step(batch, &result);
  TR_CHECK(status.ok()) << status.ToString();
}

// The time of one step, which is undone afterwards.
double StepMilliseconds(Engine* engine, const Shape& shape, int seed) {
  const std::vector<TokenId> ids = Ids(shape.new_ids, seed);
  const absl::Time start = RealClock::Get().Now();
  Step(engine, 0, shape.rows, ids, 1);
  const absl::Time end = RealClock::Get().Now();
  for (int row = 0; row < shape.rows; ++row) {
    engine->Truncate({static_cast<uint64_t>(row) + 1}, shape.context);
  }
  return absl::ToDoubleMilliseconds(end - start);
}

struct Options {
  std::string model;
  std::string format = "int8";
  std::string kv_format = "fp32";
  std::string shapes =
      "1x1@200,2x1@200,4x1@200,8x1@200,16x1@200,1x16@200,4x8@200,1x64@0,1x256@0,1x1@1600";
  std::string kernels;
  std::string perf_control;
  int32_t threads = 0;
  int32_t repeats = 9;
};

absl::StatusOr<std::vector<Shape>> ShapesOf(const std::string& text) {
  std::vector<Shape> shapes;
  for (const auto word : absl::StrSplit(text, ',')) {
    Shape shape;
    if (std::sscanf(std::string(word).c_str(), "%dx%d@%d", &shape.rows, &shape.new_ids,
                    &shape.context) != 3 ||
        shape.rows < 1 || shape.rows > kMostRows || shape.new_ids < 1 || shape.context < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--shapes: \"", word, "\" is not ROWSxIDS@CONTEXT with 1 to ", kMostRows, " rows"));
    }
    shapes.push_back(shape);
  }
  return shapes;
}

// Null when no table of this processor has that name.
template <typename Table>
const Table* Named(std::span<const Table* const> tables, const std::string& name) {
  for (const Table* const table : tables) {
    if (table->name == name) return table;
  }
  return nullptr;
}

absl::Status ForceKernels(const std::string& names, TorchEngineOptions* options) {
  if (names.empty()) return absl::OkStatus();
  const std::vector<std::string> both = absl::StrSplit(names, ',');
  if (both.size() == 2) {
    options->kernels = Named(UsableKernels(), both[0]);
    options->panel_gemm = Named(UsablePanelGemms(), both[1]);
    const bool linear = options->panel_gemm != nullptr || both[1] == "xnnpack";
    if (options->kernels != nullptr && linear) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--kernels: this processor does not run \"", names, "\""));
}

// Controls what a waiting perf process records.
class Recording {
 public:
  explicit Recording(const std::string& fifo) {
    if (fifo.empty()) return;
    control_.open(fifo);
    acknowledged_.open(fifo + ".ack");
  }
  // Returns when perf has done it.
  void Say(const char* command) {
    if (!control_.is_open()) return;
    control_ << command << std::endl;
    std::string line;
    std::getline(acknowledged_, line);
  }

 private:
  std::ofstream control_;
  std::ifstream acknowledged_;
};

void Measure(Engine* engine, const Shape& shape, int repeats, Recording* recording) {
  for (int row = 0; row < kMostRows; ++row) {
    engine->Release({static_cast<uint64_t>(row) + 1});
  }
  for (int filled = 0; filled < shape.context; filled += kFillIds) {
    const int ids = std::min(kFillIds, shape.context - filled);
    for (int row = 0; row < shape.rows; ++row) Step(engine, row, 1, Ids(ids, row), 0);
  }
  StepMilliseconds(engine, shape, 0);  // Pages in what a step needs.
  std::vector<double> times;
  recording->Say("enable");
  for (int i = 0; i < repeats; ++i) times.push_back(StepMilliseconds(engine, shape, i));
  recording->Say("disable");
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  absl::PrintF(
      "{\"bench\": \"engine_steps\", \"model\": \"%s\", \"rows\": %d, \"new_ids_per_row\": %d, "
      "\"context\": %d, \"ms\": %.2f, \"best_ms\": %.2f, \"ids_per_s\": %.1f}\n",
      engine->info().model_name, shape.rows, shape.new_ids, shape.context, median, times.front(),
      shape.rows * shape.new_ids * 1e3 / median);
  std::fflush(stdout);
}

absl::Status Run(int argc, char** argv) {
  Options options;
  Settings settings("engine_steps_bench", "Times steps of the real engine");
  settings.Add("model", &options.model, "a .gguf file or a Hugging Face folder");
  settings.AddChoice("format", &options.format, {"int8", "int4", "fp32"}, "of the weights");
  settings.AddChoice("kv_format", &options.kv_format, {"fp32", "int8"}, "of keys and values");
  settings.Add("shapes", &options.shapes, "ROWSxIDS@CONTEXT, separated by commas");
  settings.Add("kernels", &options.kernels, "two names that are forced; empty: the best ones");
  settings.Add("perf_control", &options.perf_control, "fifo of a perf record; empty: none");
  settings.Add("threads", &options.threads, 0, 256, "compute threads; 0: one per core");
  settings.Add("repeats", &options.repeats, 1, 100'000, "steps per shape");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  TR_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, ShapesOf(options.shapes));
  TorchEngineOptions engine_options{.model_path = options.model, .threads = options.threads};
  TR_ASSIGN_OR_RETURN(engine_options.weight_format, ParseWeightFormat(options.format));
  TR_ASSIGN_OR_RETURN(engine_options.kv_format, ParseKvFormat(options.kv_format));
  TR_RETURN_IF_ERROR(ForceKernels(options.kernels, &engine_options));
  engine_options.compute_nice = 0;
  engine_options.max_step_tokens = kMostStepTokens;
  engine_options.kv_bytes = int64_t{2} << 30;
  const absl::Time start = RealClock::Get().Now();
  TR_ASSIGN_OR_RETURN(const auto engine, TorchEngine::Create(engine_options));
  absl::PrintF(
      "{\"bench\": \"engine_start\", \"model\": \"%s\", \"numerics_class\": \"%s\", \"load_s\": "
      "%.2f}\n",
      engine->info().model_name, engine->info().numerics_class,
      absl::ToDoubleSeconds(RealClock::Get().Now() - start));
  Recording recording(options.perf_control);
  for (const Shape& shape : shapes) Measure(engine.get(), shape, options.repeats, &recording);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
