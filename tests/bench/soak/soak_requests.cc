#include "tests/bench/soak/soak_requests.h"

#include <boost/json/array.hpp>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/bench/measure/program_lines.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

// About 17 ids each, behind a question of about 40.
constexpr int kLines[] = {1, 2, 4, 8, 12, 20, 40, 84};
constexpr int kMostLinesAtOnce = 8;  // Of a prompt whose answer may come as a whole.
constexpr int kAnswerTokens[] = {16, 24, 48};
// Of recurring requests: some differ only in how they are served, and share KV.
constexpr int kPrompts = 2 * std::size(kLines);
constexpr int kUniqueSeed = 1000;  // Above the indices of recurring requests.

json::object Routing(int kind) {
  switch (kind) {
    case 0:
      return {{"algorithm", "entropy"}, {"threshold", 0.45}, {"service_mode", "routed"}};
    case 1:
      return {{"algorithm", "random"}, {"p", 0.1}, {"service_mode", "routed"}};
    case 2:
      return {{"algorithm", "speculative"}, {"window", 4}, {"service_mode", "routed"}};
    case 3:
      return {{"algorithm", "never"}, {"service_mode", "routed"}};
    case 4:
      return {{"algorithm", "entropy"}, {"threshold", 0.45}, {"service_mode", "large_alone"}};
    default:
      return {{"algorithm", "entropy"}, {"threshold", 0.45}};  // As the load suggests.
  }
}

constexpr int kRoutingKinds = 6;
constexpr int kOpenMode = 5;  // The kind that leaves the service mode open.

SoakRequest Make(int seed, int prompt, int lines, int routing, int answer, bool sampled) {
  SoakRequest made;
  made.chat.prompt = absl::StrCat(ProgramLines(lines, prompt), "What does this program compute?");
  made.chat.routing = Routing(routing);
  made.chat.max_tokens = kAnswerTokens[answer];
  made.chat.temperature = sampled ? 0.8 : 0;
  made.chat.seed = seed;
  made.repeatable = routing != kOpenMode;
  made.may_stream_only = lines > kMostLinesAtOnce;
  return made;
}

}  // namespace

SoakRequest RecurringRequest(int index) {
  constexpr int kLengths = std::size(kLines);
  SoakRequest made =
      Make(index, index % kPrompts, kLines[index % kLengths], index / kLengths % kRoutingKinds,
           index % static_cast<int>(std::size(kAnswerTokens)), index % 4 == 3);
  if (index % 5 == 0) made.chat.more = {{"stop", json::array{"\n\n", "rows"}}};
  if (index % 7 == 0) made.chat.ignore_eos = false;
  return made;
}

SoakRequest UniqueRequest(uint64_t number) {
  const int place = static_cast<int>(number % 1'000'000);
  return Make(kUniqueSeed + place, kUniqueSeed + place, 1 + place % 24, place % kRoutingKinds,
              place % 2, false);
}

BadRequest BadRequestOf(uint64_t number) {
  const auto with = [](const std::string& fields) {
    return R"({"model":"tokenrouter","messages":[{"role":"user","content":"hi"}])" + fields + "}";
  };
  const BadRequest requests[] = {
      {"{\"model\": ", 400},
      {R"({"model":"gpt-9","messages":[{"role":"user","content":"hi"}]})", 404},
      {with(R"(,"temperature":9)"), 400},
      {with(R"(,"routing":{"algorithm":"oracle"})"), 400},
      {with(R"(,"max_tokens":-1)"), 400},
      {R"({"model":"tokenrouter","messages":[{"role":"user","content":")" +
           std::string(200'000, 'a') + R"("}]})",
       400}};
  return requests[number % std::size(requests)];
}

}  // namespace tokenrouter
