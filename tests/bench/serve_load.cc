#include "tests/bench/serve_load.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/status/status_macros.h"
#include "tests/bench/timed_stream.h"
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

absl::StatusOr<TimedStream> Follow(const BurstOptions& options, int client) {
  const size_t prompt = static_cast<size_t>(options.first_prompt + client) % std::size(kPrompts);
  ChatRequest request{.prompt = kPrompts[prompt], .max_tokens = options.new_tokens, .seed = client};
  request.routing = options.routing;
  return FollowStream(options.http_port, request);
}

// When neither model has any of its prompt left to read.
absl::Time BeginsDecoding(const TimedStream& client) {
  const auto& authors = client.answer.authors;
  const auto large = std::find(authors.begin(), authors.end(), "large");
  return large == authors.end() ? client.tokens.front() : client.tokens[large - authors.begin()];
}

void AddDecoding(const std::vector<TimedStream>& clients, Burst* burst) {
  absl::Time from = absl::InfinitePast(), to = absl::InfiniteFuture();
  for (const TimedStream& client : clients) {
    from = std::max(from, BeginsDecoding(client));
    to = std::min(to, client.tokens.back());
  }
  if (to <= from) return;
  for (const TimedStream& client : clients) {
    for (size_t i = 0; i < client.tokens.size(); ++i) {
      if (client.tokens[i] <= from || client.tokens[i] > to) continue;
      ++burst->decode_tokens;
      if (client.answer.authors[i] == "large") ++burst->decode_large_tokens;
    }
  }
  burst->decode_seconds = absl::ToDoubleSeconds(to - from);
}

}  // namespace

absl::StatusOr<Burst> RunBurst(const BurstOptions& options) {
  std::vector<std::future<absl::StatusOr<TimedStream>>> futures;
  for (int i = 0; i < options.clients; ++i) {
    futures.push_back(std::async(std::launch::async, Follow, std::cref(options), i));
  }
  std::vector<TimedStream> clients;
  absl::Status failed;
  for (auto& future : futures) {
    absl::StatusOr<TimedStream> times = future.get();
    if (times.ok() && times->tokens.size() < 2)
      times = absl::InternalError("fewer than two tokens came");
    if (times.ok()) clients.push_back(*std::move(times));
    failed.Update(times.status());
  }
  TR_RETURN_IF_ERROR(failed);
  Burst burst;
  absl::Time first = absl::InfiniteFuture(), last = absl::InfinitePast();
  for (const TimedStream& client : clients) {
    burst.tokens += static_cast<int>(client.tokens.size());
    burst.large_tokens += client.answer.CountBy("large");
    burst.ttft_ms.push_back(client.FirstMs());
    burst.tpot_ms.push_back(
        absl::ToDoubleMilliseconds(client.tokens.back() - client.tokens.front()) /
        static_cast<double>(client.tokens.size() - 1));
    first = std::min(first, client.sent);
    last = std::max(last, client.tokens.back());
  }
  burst.seconds = absl::ToDoubleSeconds(last - first);
  AddDecoding(clients, &burst);
  return burst;
}

}  // namespace tokenrouter
