// The sampler on one row of a real vocabulary. One JSON row per case: nanoseconds of CPU per row.
//   sampler_bench [--ids=151936] [--rounds=300]
// Two kinds of logits: `peaked`, where a few ids stand far above a normal bulk (most positions of
// a model), and `flat`, where the bulk holds much of the probability.
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libs/config/settings.h"
#include "libs/sampling/row_kernels.h"
#include "libs/sampling/sampler.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "tests/bench/measure/bench_parts.h"

namespace tokenrouter {
namespace {

struct Case {
  std::string name;
  SamplingParameters parameters;
};

const Case kCases[] = {
    {"greedy", {.temperature = 0.0f}},
    {"temperature_1", {.temperature = 1.0f}},
    {"temperature_0.7", {.temperature = 0.7f}},
    {"top_k_50", {.top_k = 50}},
    {"top_p_0.95", {.top_p = 0.95f}},
    {"chat", {.temperature = 0.7f, .top_k = 20, .top_p = 0.8f, .repetition_penalty = 1.1f}},
};

std::vector<float> Logits(int32_t ids, float peak) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0.0f, 2.5f);
  std::vector<float> logits(ids);
  for (float& x : logits) x = normal(random);
  for (int i = 0; i < 30; ++i) logits[(i * 7919) % ids] = peak - 0.5f * static_cast<float>(i);
  return logits;
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double NanosecondsPerRow(const Case& measured, const std::vector<float>& logits, int rounds) {
  SamplingContext context{.parameters = measured.parameters};
  for (TokenId id = 0; id < 300; ++id) context.generated_counts[id * 31] = 1;
  SamplerScratch scratch;
  const auto sample = [&](Position position) {
    const auto choice =
        SampleRow(logits, context, position, {}, static_cast<int32_t>(logits.size()), &scratch);
    TR_CHECK(choice.ok()) << choice.status();
  };
  sample(0);
  const double start = CpuSeconds();
  for (Position position = 1; position <= rounds; ++position) sample(position);
  return (CpuSeconds() - start) / rounds * 1e9;
}

absl::Status Run(int argc, char** argv) {
  int32_t ids = 151936, rounds = 300;
  Settings settings("sampler_bench", "CPU time of sampling one row");
  settings.Add("ids", &ids, 10000, 10000000, "usable ids of the row");
  settings.Add("rounds", &rounds, 1, 1000000, "rows per case");
  TR_ASSIGN_OR_RETURN(const bool go_on, settings.Parse(argc, argv));
  if (!go_on) return absl::OkStatus();
  for (const auto& [kind, peak] : {std::pair{"peaked", 20.0f}, std::pair{"flat", 13.0f}}) {
    const std::vector<float> logits = Logits(ids, peak);
    for (const Case& measured : kCases) {
      std::cout << boost::json::serialize(boost::json::object{
                       {"bench", "sampler"},
                       {"case", measured.name},
                       {"logits", kind},
                       {"ids", ids},
                       {"kernels", BestRowKernels().name},
                       {"ns_per_row", NanosecondsPerRow(measured, logits, rounds)}})
                << std::endl;
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) { return tokenrouter::BenchMain(tokenrouter::Run, argc, argv); }
