#include "tests/bench/engine/delay_part.h"

#include <atomic>
#include <boost/json/object.hpp>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/status/status_macros.h"
#include "tests/bench/engine/engine_cell.h"
#include "tests/bench/engine/real_pair.h"
#include "tests/bench/measure/percentile.h"
#include "tests/bench/measure/timed_stream.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int kWriters = 4;
constexpr int kWriterTokens = 1024;
constexpr int kLongLines = 250;  // About 4k tokens.
constexpr int kShortLines = 4;   // About 100.
constexpr absl::Duration kBefore = absl::Seconds(4);
constexpr absl::Duration kShortAfter = absl::Milliseconds(500);

std::string Lines(int count, int seed) {
  std::string text = "Explain this program.\n";
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "value_", seed, "_", i, " = scale(rows[", i * 7 % 31, "])\n");
  }
  return text;
}

// A request that only the large model serves.
absl::StatusOr<TimedStream> Follow(int port, std::string prompt, int new_tokens,
                                   const std::atomic<bool>* stop = nullptr) {
  TR_ASSIGN_OR_RETURN(TimedStream stream, FollowStream(port,
                                                       {.prompt = std::move(prompt),
                                                        .routing = {{"algorithm", "always"}},
                                                        .max_tokens = new_tokens},
                                                       stop));
  if (stream.tokens.empty()) return absl::InternalError("no token came");
  return stream;
}

void AddGaps(const TimedStream& stream, absl::Time from, absl::Time to, std::vector<double>* gaps) {
  for (size_t i = 1; i < stream.tokens.size(); ++i) {
    if (stream.tokens[i - 1] < from || stream.tokens[i - 1] > to) continue;
    gaps->push_back(absl::ToDoubleMilliseconds(stream.tokens[i] - stream.tokens[i - 1]));
  }
}

absl::Status MeasureDelay(int port, int round, json::object* row) {
  TR_ASSIGN_OR_RETURN(const TimedStream short_alone, Follow(port, Lines(kShortLines, ++round), 2));
  TR_ASSIGN_OR_RETURN(const TimedStream long_alone, Follow(port, Lines(kLongLines, ++round), 2));
  std::atomic<bool> stop{false};
  std::vector<std::future<absl::StatusOr<TimedStream>>> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(
        std::async(std::launch::async, Follow, port, Lines(2, 1000 + i), kWriterTokens, &stop));
  }
  std::this_thread::sleep_for(absl::ToChronoMilliseconds(kBefore));
  const absl::Time begin = absl::Now();
  auto long_one =
      std::async(std::launch::async, Follow, port, Lines(kLongLines, ++round), 2, nullptr);
  std::this_thread::sleep_for(absl::ToChronoMilliseconds(kShortAfter));
  const absl::StatusOr<TimedStream> short_one = Follow(port, Lines(kShortLines, ++round), 2);
  const absl::StatusOr<TimedStream> read = long_one.get();
  stop = true;
  std::vector<double> before, meanwhile;
  for (auto& writer : writers) {
    TR_ASSIGN_OR_RETURN(const TimedStream stream, writer.get());
    if (!read.ok()) continue;
    AddGaps(stream, begin - kBefore / 2, begin, &before);
    AddGaps(stream, begin, read->tokens.front(), &meanwhile);
  }
  TR_RETURN_IF_ERROR(read.status());
  TR_RETURN_IF_ERROR(short_one.status());
  if (before.empty() || meanwhile.empty()) return absl::InternalError("the decoding rows stalled");
  *row = {{"bench", "engine"},
          {"part", "delay"},
          {"writers", kWriters},
          {"long_prompt_tokens", read->PromptTokens()},
          {"gap_ms_p50_before", Rounded(Percentile(before, 0.5))},
          {"gap_ms_p50", Rounded(Percentile(meanwhile, 0.5))},
          {"gap_ms_p99", Rounded(Percentile(meanwhile, 0.99))},
          {"gap_ms_most", Rounded(Percentile(meanwhile, 1))},
          {"long_ttft_ms", Rounded(read->FirstMs())},
          {"long_ttft_ms_alone", Rounded(long_alone.FirstMs())},
          {"short_ttft_ms", Rounded(short_one->FirstMs())},
          {"short_ttft_ms_alone", Rounded(short_alone.FirstMs())}};
  return absl::OkStatus();
}

}  // namespace

absl::Status RunDelayPart(const EngineBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(const auto cluster, StartPair(options, "delay", /*prefix_cache=*/false));
  for (int round = 0; round < options.rounds; ++round) {
    json::object row;
    TR_RETURN_IF_ERROR(MeasureDelay(cluster->gateway().port, round * 10, &row));
    PrintRow(row);
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
