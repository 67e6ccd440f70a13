#include "tests/bench/serve/serve_load.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/status/status_macros.h"
#include "tests/bench/measure/timed_stream.h"
#include "tests/support/chat.h"

namespace tokenrouter {
namespace {

// Everyday requests to a coding model; long enough that 128 tokens never reach the end of the
// answer.
constexpr const char* kPrompts[] = {
    "Write a Python function that merges two sorted lists and explain each step.",
    "Write a C function that reverses a linked list in place. Show a test for it.",
    "Explain how a hash table works and write one in Python with open addressing.",
    "Write a SQL query that finds the second highest salary per department, and explain it.",
    "Write a Python class for a least recently used cache with get and put methods.",
    "Show how to read a large CSV file line by line in Python and sum one column.",
    "Write a JavaScript function that debounces another function, with comments.",
    "Write a Python generator that yields prime numbers, then use it to print twenty.",
    "Explain the difference between a process and a thread with an example in Python.",
    "Write a binary search in Java and explain why the midpoint needs care.",
    "Write a Python script that counts the words of a text file and prints the top ten.",
    "Implement depth first search and breadth first search on a graph in Python.",
    "Write a Go program that starts three goroutines and collects their results.",
    "Write a Python function that validates an email address without regular expressions.",
    "Show a Rust struct for a stack of integers with push, pop and peek methods.",
    "Write a bash script that backs up a folder and keeps the last five copies.",
};

struct Span {
  absl::Time from, to;
};

absl::StatusOr<std::vector<TimedStream>> Follow(const BurstOptions& options, int client) {
  std::vector<TimedStream> answers;
  for (int i = 0; i < options.requests; ++i) {
    const size_t number = static_cast<size_t>(options.first_prompt + client + i * options.clients);
    ChatRequest request{.prompt = kPrompts[number % std::size(kPrompts)],
                        .max_tokens = options.new_tokens,
                        .seed = client};
    request.routing = options.routing;
    TR_ASSIGN_OR_RETURN(TimedStream answer, FollowStream(options.http_port, request));
    if (answer.tokens.size() < 2) return absl::InternalError("fewer than two tokens came");
    answers.push_back(std::move(answer));
  }
  return answers;
}

// The time from which neither model has uncomputed tokens of its prompt.
absl::Time BeginsDecoding(const TimedStream& answer) {
  const auto& authors = answer.answer.authors;
  const auto large = std::find(authors.begin(), authors.end(), "large");
  return large == authors.end() ? answer.tokens.front() : answer.tokens[large - authors.begin()];
}

std::vector<Span> Writing(const std::vector<TimedStream>& answers) {
  std::vector<Span> spans;
  for (const TimedStream& answer : answers) {
    spans.push_back({BeginsDecoding(answer), answer.tokens.back()});
  }
  return spans;
}

std::vector<Span> Common(const std::vector<Span>& some, const std::vector<Span>& others) {
  std::vector<Span> common;
  for (const Span& one : some) {
    for (const Span& other : others) {
      const Span both = {std::max(one.from, other.from), std::min(one.to, other.to)};
      if (both.from < both.to) common.push_back(both);
    }
  }
  return common;
}

void AddDecoding(const std::vector<std::vector<TimedStream>>& clients, Burst* burst) {
  std::vector<Span> all_write = {{absl::InfinitePast(), absl::InfiniteFuture()}};
  for (const auto& answers : clients) all_write = Common(all_write, Writing(answers));
  for (const Span& span : all_write) {
    burst->decode_seconds += absl::ToDoubleSeconds(span.to - span.from);
  }
  const auto counts = [&](absl::Time token) {
    return std::any_of(all_write.begin(), all_write.end(),
                       [&](const Span& span) { return token > span.from && token <= span.to; });
  };
  for (const auto& answers : clients) {
    for (const TimedStream& answer : answers) {
      for (size_t i = 0; i < answer.tokens.size(); ++i) {
        if (!counts(answer.tokens[i])) continue;
        ++burst->decode_tokens;
        if (answer.answer.authors[i] == "large") ++burst->decode_large_tokens;
      }
    }
  }
}

void AddAnswer(const TimedStream& answer, Burst* burst) {
  burst->tokens += static_cast<int>(answer.tokens.size());
  burst->large_tokens += answer.answer.CountBy("large");
  burst->ttft_ms.push_back(answer.FirstMs());
  burst->tpot_ms.push_back(
      absl::ToDoubleMilliseconds(answer.tokens.back() - answer.tokens.front()) /
      static_cast<double>(answer.tokens.size() - 1));
}

}  // namespace

absl::StatusOr<Burst> RunBurst(const BurstOptions& options) {
  std::vector<std::future<absl::StatusOr<std::vector<TimedStream>>>> futures;
  for (int i = 0; i < options.clients; ++i) {
    futures.push_back(std::async(std::launch::async, Follow, std::cref(options), i));
  }
  std::vector<std::vector<TimedStream>> clients;
  absl::Status failed;
  for (auto& future : futures) {
    absl::StatusOr<std::vector<TimedStream>> answers = future.get();
    if (answers.ok()) clients.push_back(*std::move(answers));
    failed.Update(answers.status());
  }
  TR_RETURN_IF_ERROR(failed);
  Burst burst;
  absl::Time first = absl::InfiniteFuture(), last = absl::InfinitePast();
  for (const auto& answers : clients) {
    for (const TimedStream& answer : answers) AddAnswer(answer, &burst);
    first = std::min(first, answers.front().sent);
    last = std::max(last, answers.back().tokens.back());
  }
  burst.seconds = absl::ToDoubleSeconds(last - first);
  AddDecoding(clients, &burst);
  return burst;
}

}  // namespace tokenrouter
