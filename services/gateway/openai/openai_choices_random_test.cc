// Sends random requests with n > 1 through the HTTP handler and compares each choice with the same
// request sent alone under its index. The text of a request is a function of its seed, index and
// position; events, cuts, stops, failures and the client's leaving are random.
#include <boost/json.hpp>
#include <random>

#include "services/gateway/testing/openai_http_fixture.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;
using Kind = HttpStep::Kind;

struct Said {
  std::string text;
  std::vector<std::string> tokens;  // Of logprobs.
  std::string finish_reason;

  bool operator==(const Said&) const = default;
  bool StartsAs(const Said& whole) const {
    return whole.text.starts_with(text) && tokens.size() <= whole.tokens.size() &&
           std::equal(tokens.begin(), tokens.end(), whole.tokens.begin());
  }
};

void PrintTo(const Said& said, std::ostream* out) {
  *out << said.text << " (" << said.finish_reason << ", " << said.tokens.size() << " tokens)";
}

class OpenAiChoicesRandomTest : public OpenAiHttpFixture {
 protected:
  OpenAiChoicesRandomTest() : OpenAiHttpFixture(/*max_requests=*/64) {}

  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  // The byte at a position of a request; '.' is its stop id.
  static char ByteAt(const wire::GenerationSpec& spec, int32_t position) {
    std::seed_seq key{static_cast<uint32_t>(spec.sampling().seed()), spec.choice(),
                      static_cast<uint32_t>(position)};
    const uint32_t bits = std::mt19937(key)();
    return bits % 23 == 0 ? '.' : static_cast<char>('a' + bits % 3);
  }
  bool Runs(size_t handle) const {
    const auto& request = port_.submitted[handle];
    return !request.cancelled && !request.finish && !ended_[handle];
  }
  // Sends the next tokens of a request, and its end where that is due.
  void Advance(size_t handle, int tokens) {
    port_.to = handle;
    auto& request = port_.submitted[handle];
    const int32_t end = request.spec.prompt_length() + request.spec.stop().max_new_tokens();
    std::string text;
    std::optional<api::FinishReason> reason;
    while (tokens-- > 0 && !reason) {
      const int32_t position = request.committed + static_cast<int32_t>(text.size());
      text += ByteAt(request.spec, position);
      if (position + 1 == end) reason = api::FINISH_REASON_LENGTH;
      if (text.back() == '.') reason = api::FINISH_REASON_STOP;
    }
    if (!reason) return port_.SendText(text);
    ended_[handle] = true;
    port_.SendFinish(*reason, std::vector<int32_t>(text.begin(), text.end()));
  }

  static void AddChoice(const json::value& choice, std::vector<Said>* said) {
    Said& of_choice = said->at(choice.at("index").to_number<size_t>());
    EXPECT_EQ(of_choice.finish_reason, "") << "an event followed the end of a choice";
    of_choice.text += choice.at("text").as_string();
    if (choice.at("finish_reason").is_string()) {
      of_choice.finish_reason = choice.at("finish_reason").as_string();
    }
    if (!choice.at("logprobs").is_object()) return;
    for (const json::value& token : choice.at("logprobs").at("tokens").as_array()) {
      of_choice.tokens.emplace_back(token.as_string());
    }
  }

  enum class Outcome { kRuns, kAnswered, kFailed };

  // Takes what the call has to write.
  static Outcome Pump(HttpCall* call, std::vector<Said>* said, json::value* usage) {
    while (true) {
      const HttpStep step = Take(call);
      if (step.kind == Kind::kWait) return Outcome::kRuns;
      if (step.kind == Kind::kStreamEnd) return step.close ? Outcome::kFailed : Outcome::kAnswered;
      if (step.kind == Kind::kReply) {
        if (step.status != 200) return Outcome::kFailed;
        const json::value body = json::parse(step.bytes);
        for (const json::value& choice : body.at("choices").as_array()) AddChoice(choice, said);
        *usage = body.at("usage");
        return Outcome::kAnswered;
      }
      if (step.kind != Kind::kStreamData) continue;
      for (const std::string& data : Data(step.bytes)) {
        if (data == "[DONE]") continue;
        const json::value event = json::parse(data);
        if (event.as_object().contains("error")) continue;
        for (const json::value& choice : event.at("choices").as_array()) AddChoice(choice, said);
        if (event.at("usage").is_object()) *usage = event.at("usage");
      }
    }
  }

  // The text of the request under this index when it runs alone and without failures.
  Said Alone(const std::string& body, uint32_t index) {
    json::object alone = json::parse(body).as_object();
    alone["n"] = 1;
    alone["stream"] = false;
    alone.erase("stream_options");
    const auto call = Start("POST", "/v1/completions", json::serialize(alone));
    const size_t handle = port_.submitted.size() - 1;
    ended_.resize(port_.submitted.size());
    port_.submitted[handle].spec.set_choice(index);
    std::vector<Said> said(1);
    json::value usage;
    while (Pump(call.get(), &said, &usage) == Outcome::kRuns) Advance(handle, 1);
    return said[0];
  }

  std::string RandomBody(int n) {
    json::object body{{"model", "tokenrouter"},   {"prompt", "once"}, {"n", n},
                      {"seed", Draw(0, 1 << 20)}, {"logprobs", 0},    {"max_tokens", Draw(1, 60)}};
    if (Draw(0, 1) == 0) {
      body["stream"] = true;
      body["stream_options"] = {{"include_usage", true}};
    }
    json::array stops;
    for (int i = Draw(0, 3); i > 0; --i) {
      std::string stop;
      for (int length = Draw(2, 4); length > 0; --length) stop += static_cast<char>(Draw('a', 'c'));
      stops.push_back(json::value(stop));
    }
    if (!stops.empty()) body["stop"] = std::move(stops);
    return json::serialize(body);
  }

  void CheckUsage(const json::value& usage, const std::vector<Said>& said) {
    size_t tokens = 0;
    for (const Said& of_choice : said) tokens += of_choice.tokens.size();
    EXPECT_EQ(usage.at("prompt_tokens"), 4);
    EXPECT_EQ(usage.at("completion_tokens"), tokens);
  }

  void RunOne() {
    const int n = Draw(1, kMaxChoices);
    const std::string body = RandomBody(n);
    const size_t first = port_.submitted.size();
    auto call = Start("POST", "/v1/completions", body);
    ASSERT_EQ(port_.submitted.size(), first + n);
    ended_.resize(port_.submitted.size());
    std::vector<Said> said(n);
    json::value usage;
    const int trouble = Draw(0, 2);  // 0: none, 1: a choice fails, 2: the client leaves.
    int steps = trouble == 0 ? -1 : Draw(0, 30);
    Outcome outcome = Outcome::kRuns;
    while (outcome == Outcome::kRuns && steps-- != 0) {
      const size_t handle = first + Draw(0, n - 1);
      if (Runs(handle)) Advance(handle, Draw(1, 6));
      if (Draw(0, 2) == 0) outcome = Pump(call.get(), &said, &usage);
    }
    const size_t last = first + Draw(0, n - 1);
    if (outcome == Outcome::kRuns && trouble == 1 && Runs(last)) {
      port_.to = last;
      port_.SendError(absl::UnavailableError("lost"));
      // A stop string in text that was not looked at yet may have ended it earlier.
      outcome = Pump(call.get(), &said, &usage);
      ended_[last] = outcome == Outcome::kFailed;
      for (int i = 0; i < n && ended_[last]; ++i) EXPECT_FALSE(Runs(first + i)) << i;
    }
    call.reset();
    for (int i = 0; i < n; ++i) {
      SCOPED_TRACE(absl::StrCat("choice ", i, " of ", body));
      EXPECT_FALSE(Runs(first + i)) << "a generation continued without a client";
      const Said alone = Alone(body, i);
      EXPECT_TRUE(outcome == Outcome::kAnswered ? said[i] == alone : said[i].StartsAs(alone))
          << ::testing::PrintToString(said[i]) << "\n"
          << ::testing::PrintToString(alone);
    }
    if (outcome == Outcome::kAnswered) CheckUsage(usage, said);
  }

  std::mt19937 random_{1};
  std::vector<bool> ended_;  // Per handle: the scheduler has sent its end.
};

TEST_F(OpenAiChoicesRandomTest, EveryChoiceSaysWhatTheRequestAloneWouldHaveSaid) {
  for (int run = 0; run < 300 && !HasFailure(); ++run) {
    SCOPED_TRACE(absl::StrCat("run ", run));
    ASSERT_NO_FATAL_FAILURE(RunOne());
    port_.submitted.clear();
    ended_.clear();
  }
}

}  // namespace
}  // namespace tokenrouter
