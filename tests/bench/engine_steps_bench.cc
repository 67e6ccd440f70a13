// Measures steps of the real engine and prints one JSON row per shape:
//   engine_steps_bench MODEL [int8|int4|fp32] [threads] [repeats] [ROWSxIDS@CONTEXT ...]
// Each row: model, rows of the step, new ids per row, context before the step, best and median
// milliseconds, ids per second of the median.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "libs/status/check.h"
#include "libs/timing/real_clock.h"
#include "libs/torch_engine/torch_engine.h"

namespace tokenrouter {
namespace {

constexpr Position kContext = 200;
constexpr TokenId kFirstId = 1000;  // Ordinary text ids of every model.
constexpr int kIdRange = 5000;

struct Shape {
  int rows = 1;
  int new_ids = 1;  // Per row.
  Position context = kContext;
};

std::vector<TokenId> Ids(int count, int seed) {
  std::vector<TokenId> ids(count);
  for (int i = 0; i < count; ++i) ids[i] = kFirstId + (i * 7919 + seed * 104729) % kIdRange;
  return ids;
}

double StepMilliseconds(Engine* engine, int rows, const std::vector<TokenId>& ids, int choices) {
  SamplingContext sampling;
  sampling.parameters.temperature = 0.0f;
  StepBatch batch;
  for (int row = 0; row < rows; ++row) {
    const SequenceId sequence{static_cast<uint64_t>(row) + 1};
    batch.rows.push_back({.sequence = sequence,
                          .first = engine->Length(sequence),
                          .new_ids = ids,
                          .choices = choices,
                          .sampling = &sampling});
  }
  StepResult result;
  const absl::Time start = RealClock::Get().Now();
  const absl::Status status = engine->Step(batch, &result);
  TR_CHECK(status.ok()) << status.ToString();
  return absl::ToDoubleMilliseconds(RealClock::Get().Now() - start);
}

void Measure(Engine* engine, const Shape& shape, int repeats) {
  for (int row = 0; row < shape.rows; ++row) {
    engine->Release({static_cast<uint64_t>(row) + 1});
  }
  if (shape.context > 0) StepMilliseconds(engine, shape.rows, Ids(shape.context, 1), 0);
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    times.push_back(StepMilliseconds(engine, shape.rows, Ids(shape.new_ids, i), 1));
    for (int row = 0; row < shape.rows; ++row) {
      engine->Truncate({static_cast<uint64_t>(row) + 1}, shape.context);
    }
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  absl::PrintF(
      "{\"model\": \"%s\", \"rows\": %d, \"new_ids_per_row\": %d, \"context\": %d, \"ms\": %.2f, "
      "\"best_ms\": %.2f, \"ids_per_s\": %.1f}\n",
      engine->info().model_name, shape.rows, shape.new_ids, shape.context, median, times.front(),
      shape.rows * shape.new_ids * 1e3 / median);
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: engine_steps_bench MODEL [int8|int4|fp32] [threads] [repeats] "
                 "[ROWSxIDS@CONTEXT ...]\n");
    return 2;
  }
  TorchEngineOptions options;
  options.model_path = argv[1];
  if (argc > 2) {
    const auto format = ParseWeightFormat(argv[2]);
    TR_CHECK(format.ok()) << format.status().ToString();
    options.weight_format = *format;
  }
  options.threads = argc > 3 ? std::atoi(argv[3]) : 0;
  const int repeats = argc > 4 ? std::atoi(argv[4]) : 10;
  options.compute_nice = 0;
  options.max_step_tokens = 16 * kContext;
  options.kv_bytes = int64_t{1} << 30;
  const absl::Time start = RealClock::Get().Now();
  const auto engine = TorchEngine::Create(options);
  TR_CHECK(engine.ok()) << engine.status().ToString();
  absl::PrintF("{\"model\": \"%s\", \"numerics_class\": \"%s\", \"load_s\": %.2f}\n",
               (*engine)->info().model_name, (*engine)->info().numerics_class,
               absl::ToDoubleSeconds(RealClock::Get().Now() - start));
  std::vector<Shape> shapes = {{1, 1},  {2, 1}, {4, 1},     {8, 1},      {16, 1},
                               {1, 16}, {4, 8}, {1, 64, 0}, {1, 256, 0}, {1, 1, 1600}};
  if (argc > 5) shapes.clear();
  for (int i = 5; i < argc; ++i) {
    Shape shape;
    TR_CHECK(std::sscanf(argv[i], "%dx%d@%d", &shape.rows, &shape.new_ids, &shape.context) == 3)
        << argv[i];
    shapes.push_back(shape);
  }
  for (const Shape& shape : shapes) Measure(engine->get(), shape, repeats);
  return 0;
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::Main(argc, argv); }
