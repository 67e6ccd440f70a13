#include "tests/bench/engine/prefix_part.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "tests/bench/engine/engine_cell.h"
#include "tests/bench/engine/real_pair.h"
#include "tests/bench/measure/percentile.h"
#include "tests/bench/measure/program_lines.h"
#include "tests/bench/measure/timed_stream.h"
#include "tests/support/chat.h"
#include "tests/support/cluster.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr int kTurns = 10;
constexpr int kPrefixLines = 116;  // About 2k tokens.
constexpr int kTurnLines = 19;     // About 340 tokens.
constexpr int kAnswerTokens = 64;
constexpr int kFirstAnswerTokens = 4;
constexpr const char* kUsedBlocks = "tokenrouter_worker_kv_blocks{state=\"used\"}";
constexpr const char* kReadIds = "tokenrouter_worker_catch_up_ids_total";

json::object Message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

struct TimedAnswer {
  ChatAnswer answer;
  double first_token_ms = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, answer_tokens = 0;
};

absl::StatusOr<TimedAnswer> Follow(int port, const ChatRequest& request) {
  TR_ASSIGN_OR_RETURN(TimedStream stream, FollowStream(port, request));
  if (stream.tokens.empty()) return absl::InternalError("no token came");
  TimedAnswer timed{.answer = std::move(stream.answer), .first_token_ms = stream.FirstMs()};
  const json::object& usage = timed.answer.usage;
  timed.prompt_tokens = usage.at("prompt_tokens").to_number<int64_t>();
  timed.answer_tokens = usage.at("completion_tokens").to_number<int64_t>();
  timed.cached_tokens = usage.at("prompt_tokens_details").at("cached_tokens").to_number<int64_t>();
  return timed;
}

// One cluster of the pair and the requests to it, one at a time.
class Conversations {
 public:
  explicit Conversations(std::unique_ptr<Cluster> cluster) : cluster_(std::move(cluster)) {}

  // Returns once both sides have closed the request, since only then the next one finds its KV.
  absl::StatusOr<TimedAnswer> Ask(const json::array& messages, json::object routing,
                                  int new_tokens) {
    routing["service_mode"] = "routed";
    ChatRequest request{.max_tokens = new_tokens};
    request.routing = std::move(routing);
    request.more = {{"messages", messages}};
    TR_ASSIGN_OR_RETURN(TimedAnswer answer, Follow(cluster_->gateway().port, request));
    if (!Cluster::WaitForMetric(cluster_->small(0), kUsedBlocks, 0) ||
        !Cluster::WaitForMetric(cluster_->large(0), kUsedBlocks, 0)) {
      return absl::DeadlineExceededError("a worker did not close the request");
    }
    return answer;
  }

  double LargeReadTokens() { return Cluster::Metric(cluster_->large(0), kReadIds); }

 private:
  const std::unique_ptr<Cluster> cluster_;
};

absl::Status ShareAPrefix(const EngineBenchOptions& options, const char* side,
                          const json::object& routing, int* seed, Conversations* conversations) {
  std::vector<double> first_ms, second_ms;
  TimedAnswer second;
  for (int round = 0; round < options.rounds; ++round) {
    const json::object system = Message("system", ProgramLines(kPrefixLines, ++*seed));
    TR_ASSIGN_OR_RETURN(
        const TimedAnswer first,
        conversations->Ask({system, Message("user", "What does the first line compute?")}, routing,
                           kFirstAnswerTokens));
    TR_ASSIGN_OR_RETURN(
        second, conversations->Ask({system, Message("user", "And what does the last line do?")},
                                   routing, kFirstAnswerTokens));
    if (first.cached_tokens > first.prompt_tokens / 10) {
      return absl::InternalError("the first request was cached already");
    }
    first_ms.push_back(first.first_token_ms);
    second_ms.push_back(second.first_token_ms);
  }
  PrintRow({{"bench", "engine"},
            {"part", "prefix"},
            {"answers", side},
            {"prompt_tokens", second.prompt_tokens},
            {"cached_tokens", second.cached_tokens},
            {"first_ttft_ms", Rounded(Median(first_ms))},
            {"second_ttft_ms", Rounded(Median(second_ms))},
            {"ratio", Rounded(Median(first_ms) / Median(second_ms))},
            {"rounds", options.rounds}});
  return absl::OkStatus();
}

absl::Status GrowAConversation(Conversations* conversations) {
  json::array messages = {Message("system", "You are an agent that edits programs.")};
  const double before = conversations->LargeReadTokens();
  double read = 0;
  int64_t tokens = 0;
  for (int turn = 1; turn <= kTurns; ++turn) {
    messages.push_back(
        Message("user", absl::StrCat("The tool printed:\n", ProgramLines(kTurnLines, -turn),
                                     "Say what to change next.")));
    TR_ASSIGN_OR_RETURN(
        const TimedAnswer answer,
        conversations->Ask(messages, {{"algorithm", "random"}, {"p", 0.1}}, kAnswerTokens));
    messages.push_back(Message("assistant", answer.answer.text));
    const double read_now = conversations->LargeReadTokens() - before;
    const int64_t tokens_now = answer.prompt_tokens + answer.answer_tokens;
    PrintRow({{"bench", "engine"},
              {"part", "turns"},
              {"turn", turn},
              {"prompt_tokens", answer.prompt_tokens},
              {"cached_tokens", answer.cached_tokens},
              {"new_tokens", tokens_now - tokens},
              {"large_read_tokens", static_cast<int64_t>(read_now - read)},
              {"large_answer_tokens", answer.answer.CountBy("large")},
              {"ttft_ms", Rounded(answer.first_token_ms)}});
    read = read_now;
    tokens = tokens_now;
  }
  PrintRow({{"bench", "engine"},
            {"part", "turns_sum"},
            {"turns", kTurns},
            {"tokens", tokens},
            {"large_read_tokens", static_cast<int64_t>(read)},
            {"large_read_share", Rounded(read / static_cast<double>(tokens))}});
  return absl::OkStatus();
}

}  // namespace

absl::Status RunPrefixPart(const EngineBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(auto cluster, StartPair(options, "prefix", /*prefix_cache=*/true));
  Conversations conversations(std::move(cluster));
  int seed = 0;
  TR_RETURN_IF_ERROR(
      conversations.Ask({Message("user", "Hello")}, {{"algorithm", "always"}}, 4).status());
  TR_RETURN_IF_ERROR(
      ShareAPrefix(options, "small", {{"algorithm", "never"}}, &seed, &conversations));
  TR_RETURN_IF_ERROR(
      ShareAPrefix(options, "large", {{"algorithm", "always"}}, &seed, &conversations));
  return GrowAConversation(&conversations);
}

}  // namespace tokenrouter
