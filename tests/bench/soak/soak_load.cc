#include "tests/bench/soak/soak_load.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <random>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libs/status/status_macros.h"
#include "tests/support/chat.h"
#include "tests/support/http_client.h"

namespace tokenrouter {
namespace {

constexpr const char* kTarget = "/v1/chat/completions";
// Of a hundred requests, this many are of each kind.
constexpr int kBad = 10;
constexpr int kCancelled = 20;
constexpr int kUnique = 15;
constexpr int kSlow = 5;
constexpr int kMostEventsBeforeCancel = 12;
constexpr int kEventsBeforePause = 3;
constexpr absl::Duration kPause = absl::Seconds(3);
// How long clients wait; the machine may be shared during hours of load.
constexpr absl::Duration kPatience = absl::Minutes(10);
constexpr int kNever = std::numeric_limits<int>::max();

constexpr int kTurnedAway = 429;  // A full system's answer, before the first token.

struct Reading {
  int pause_at = kNever;   // Stops reading for kPause after this many events,
  int cancel_at = kNever;  // or closes the connection.
};

absl::StatusOr<ChatAnswer> Read(int http_port, const ChatRequest& request, const Reading& reading) {
  ChatAnswer answer;
  TR_ASSIGN_OR_RETURN(
      const auto stream,
      EventStream::Open(http_port, kTarget, ChatBody(request, /*stream=*/true), kPatience));
  if (stream->code() == kTurnedAway) return absl::ResourceExhaustedError("the system is full");
  if (stream->code() != 200) return absl::InternalError(absl::StrCat("HTTP ", stream->code()));
  for (int events = 0; events < reading.cancel_at; ++events) {
    if (events == reading.pause_at) absl::SleepFor(kPause);
    TR_ASSIGN_OR_RETURN(const std::optional<std::string> event, stream->Next());
    if (!event.has_value()) return absl::UnavailableError("the stream ended without [DONE]");
    if (*event == "[DONE]") break;
    TR_RETURN_IF_ERROR(AddEvent(*event, &answer));
  }
  return answer;
}

}  // namespace

SoakLoad::SoakLoad(int http_port, int clients, uint64_t seed)
    : http_port_(http_port), first_ids_(kSoakRequests) {
  for (int i = 0; i < clients; ++i) {
    clients_.emplace_back([this, own_seed = seed + i] { RunClient(own_seed); });
  }
}

void SoakLoad::Stop() {
  stop_ = true;
  for (std::thread& client : clients_) client.join();
  clients_.clear();
}

SoakCounts SoakLoad::Counts() const {
  MutexLock lock(&mutex_);
  return counts_;
}

void SoakLoad::RunClient(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&random](int count) { return static_cast<int>(random() % count); };
  while (!stop_) {
    const int kind = draw(100);
    const int index = draw(100) < kUnique ? -1 : draw(kSoakRequests);
    if (kind < kBad) {
      AskBadly();
    } else if (kind < kBad + kCancelled) {
      Cancel(index, draw(kMostEventsBeforeCancel));
    } else if (index < 0 || RecurringRequest(index).may_stream_only || draw(2) == 0) {
      AskStreaming(index, /*slowly=*/draw(100) < kSlow);
    } else {
      AskWhole(index);
    }
  }
}

void SoakLoad::AskBadly() {
  const BadRequest request = BadRequestOf(next_number_++);
  const auto response = HttpFetch(http_port_, "POST", kTarget, request.body);
  if (!response.ok() || response->code != request.code) {
    return AddProblem(
        absl::StrCat("a bad request was answered with ",
                     response.ok() ? absl::StrCat(response->code) : response.status().ToString(),
                     " instead of ", request.code));
  }
  MutexLock lock(&mutex_);
  ++counts_.refused;
}

void SoakLoad::AskWhole(int index) {
  const auto answer = Chat(http_port_, RecurringRequest(index).chat, kPatience);
  if (answer.ok()) {
    AddAnswer(index, *answer);
  } else if (absl::StartsWith(answer.status().message(), absl::StrCat("HTTP ", kTurnedAway))) {
    AddTurnedAway();
  } else {
    AddProblem(absl::StrCat("request ", index, ": ", answer.status().ToString()));
  }
}

void SoakLoad::AskStreaming(int index, bool slowly) {
  const ChatRequest request = ChatOf(index);
  const auto answer = Read(http_port_, request, {.pause_at = slowly ? kEventsBeforePause : kNever});
  if (answer.ok()) {
    AddAnswer(index, *answer);
  } else if (absl::IsResourceExhausted(answer.status())) {
    AddTurnedAway();
  } else {
    AddProblem(absl::StrCat("streamed request ", index, ": ", answer.status().ToString()));
  }
}

void SoakLoad::Cancel(int index, int after_events) {
  const ChatRequest request = ChatOf(index);
  const auto answer = Read(http_port_, request, {.cancel_at = after_events});
  if (absl::IsResourceExhausted(answer.status())) return AddTurnedAway();
  if (!answer.ok()) {
    return AddProblem(absl::StrCat("request ", index, ", to be cancelled after ", after_events,
                                   " events: ", answer.status().ToString()));
  }
  {
    MutexLock lock(&mutex_);
    ++counts_.cancelled;
    if (index < 0 || !RecurringRequest(index).repeatable || !first_ids_[index].has_value()) return;
    const std::vector<int64_t>& first = *first_ids_[index];
    if (answer->ids.size() <= first.size() &&
        std::equal(answer->ids.begin(), answer->ids.end(), first.begin())) {
      return;
    }
    ++counts_.differing;
  }
  AddProblem(absl::StrCat("request ", index, " began with other tokens before it was cancelled"));
}

ChatRequest SoakLoad::ChatOf(int index) {
  return (index < 0 ? UniqueRequest(next_number_++) : RecurringRequest(index)).chat;
}

void SoakLoad::AddAnswer(int index, const ChatAnswer& answer) {
  {
    MutexLock lock(&mutex_);
    ++counts_.answered;
    counts_.tokens += static_cast<int64_t>(answer.ids.size());
    counts_.large_tokens += answer.CountBy("large");
    counts_.prompt_tokens += answer.usage.at("prompt_tokens").to_number<int64_t>();
    if (index < 0 || !RecurringRequest(index).repeatable) return;
    std::optional<std::vector<int64_t>>& first = first_ids_[index];
    if (!first.has_value()) {
      first = answer.ids;
      return;
    }
    if (*first == answer.ids) {
      ++counts_.compared;
      return;
    }
    ++counts_.differing;
  }
  AddProblem(absl::StrCat("request ", index, " got other tokens than the first time"));
}

void SoakLoad::AddTurnedAway() {
  MutexLock lock(&mutex_);
  ++counts_.turned_away;
}

void SoakLoad::AddProblem(const std::string& what) {
  MutexLock lock(&mutex_);
  if (++counts_.failed <= kMostProblems) std::cerr << what << std::endl;
}

}  // namespace tokenrouter
