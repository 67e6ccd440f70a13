#include "tests/bench/delay_part.h"

#include <atomic>
#include <boost/json/object.hpp>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/status/status_macros.h"
#include "tests/bench/engine_cell.h"
#include "tests/bench/percentile.h"
#include "tests/support/chat.h"
#include "tests/support/cluster.h"
#include "tests/support/http_client.h"

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

struct Stream {
  absl::Time sent;
  std::vector<absl::Time> tokens;
  int64_t prompt_tokens = 0;

  double FirstMs() const { return absl::ToDoubleMilliseconds(tokens.front() - sent); }
};

// Until its end, or until `stop`.
absl::StatusOr<Stream> Follow(int port, std::string prompt, int new_tokens,
                              const std::atomic<bool>* stop = nullptr) {
  ChatRequest request{
      .prompt = std::move(prompt), .routing = {{"algorithm", "always"}}, .max_tokens = new_tokens};
  Stream stream;
  ChatAnswer answer;
  stream.sent = absl::Now();
  TR_ASSIGN_OR_RETURN(const auto events, EventStream::Open(port, "/v1/chat/completions",
                                                           ChatBody(request, /*stream=*/true)));
  if (events->code() != 200) return absl::InternalError("the gateway refused the request");
  while (stop == nullptr || !*stop) {
    TR_ASSIGN_OR_RETURN(const std::optional<std::string> event, events->Next());
    if (!event.has_value()) return absl::UnavailableError("the stream ended early");
    if (*event == "[DONE]") break;
    TR_RETURN_IF_ERROR(AddEvent(*event, &answer));
    stream.tokens.resize(answer.ids.size(), absl::Now());
  }
  if (stream.tokens.empty()) return absl::InternalError("no token came");
  if (answer.usage.contains("prompt_tokens")) {
    stream.prompt_tokens = answer.usage.at("prompt_tokens").to_number<int64_t>();
  }
  return stream;
}

void AddGaps(const Stream& stream, absl::Time from, absl::Time to, std::vector<double>* gaps) {
  for (size_t i = 1; i < stream.tokens.size(); ++i) {
    if (stream.tokens[i - 1] < from || stream.tokens[i - 1] > to) continue;
    gaps->push_back(absl::ToDoubleMilliseconds(stream.tokens[i] - stream.tokens[i - 1]));
  }
}

absl::Status MeasureDelay(int port, int round, json::object* row) {
  TR_ASSIGN_OR_RETURN(const Stream short_alone, Follow(port, Lines(kShortLines, ++round), 2));
  TR_ASSIGN_OR_RETURN(const Stream long_alone, Follow(port, Lines(kLongLines, ++round), 2));
  std::atomic<bool> stop{false};
  std::vector<std::future<absl::StatusOr<Stream>>> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(
        std::async(std::launch::async, Follow, port, Lines(2, 1000 + i), kWriterTokens, &stop));
  }
  std::this_thread::sleep_for(absl::ToChronoMilliseconds(kBefore));
  const absl::Time begin = absl::Now();
  auto long_one =
      std::async(std::launch::async, Follow, port, Lines(kLongLines, ++round), 2, nullptr);
  std::this_thread::sleep_for(absl::ToChronoMilliseconds(kShortAfter));
  const absl::StatusOr<Stream> short_one = Follow(port, Lines(kShortLines, ++round), 2);
  const absl::StatusOr<Stream> read = long_one.get();
  stop = true;
  std::vector<double> before, meanwhile;
  for (auto& writer : writers) {
    TR_ASSIGN_OR_RETURN(const Stream stream, writer.get());
    if (!read.ok()) continue;
    AddGaps(stream, begin - kBefore / 2, begin, &before);
    AddGaps(stream, begin, read->tokens.front(), &meanwhile);
  }
  TR_RETURN_IF_ERROR(read.status());
  TR_RETURN_IF_ERROR(short_one.status());
  if (before.empty() || meanwhile.empty()) return absl::InternalError("the writers stood still");
  *row = {{"bench", "engine"},
          {"part", "delay"},
          {"writers", kWriters},
          {"long_prompt_tokens", read->prompt_tokens},
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
  if (options.small.empty() || options.large.empty()) {
    return absl::InvalidArgumentError("the part delay needs --small and --large");
  }
  TR_ASSIGN_OR_RETURN(
      auto cluster,
      Cluster::Start({.tokenizer = options.small,
                      .worker_flags = {absl::StrCat("--weight_format=", options.formats.front()),
                                       "--device_key=cpu", "--prefix_cache=false",
                                       absl::StrCat("--threads=", options.threads)},
                      .small_flags = {"--model=" + options.small},
                      .large_flags = {"--model=" + options.large}}));
  for (int round = 0; round < options.rounds; ++round) {
    json::object row;
    TR_RETURN_IF_ERROR(MeasureDelay(cluster->gateway().port, round * 10, &row));
    PrintRow(row);
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
