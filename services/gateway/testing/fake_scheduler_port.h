// A scheduler port for tests of the front ends: records the calls that it receives, and lets the
// test send events. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/tokens/token_types.h"
#include "services/gateway/link/scheduler_port.h"

namespace tokenrouter {

class FakeSchedulerPort final : public SchedulerPort {
 public:
  struct Submitted {
    wire::GenerationSpec spec;
    std::vector<int32_t> ids;
    std::shared_ptr<GenerationSink> sink;
    int32_t committed = 0;
    int32_t acknowledged = 0;
    bool cancelled = false;
    std::optional<wire::Finish> finish;
  };

  FakeSchedulerPort() {
    health.up = true;
    health.pair.set_small_workers(1);
    health.pair.set_context_limit(100);
  }

  uint64_t Submit(wire::GenerationSpec spec, std::vector<int32_t> ids,
                  std::shared_ptr<GenerationSink> sink) override {
    if (refuses || submitted.size() >= most) return 0;
    Submitted entry{std::move(spec), std::move(ids), std::move(sink)};
    entry.committed = static_cast<int32_t>(entry.ids.size());
    submitted.push_back(std::move(entry));
    return submitted.size();
  }
  void Acknowledge(uint64_t handle, int32_t position) override {
    submitted.at(handle - 1).acknowledged = position;
  }
  void Cancel(uint64_t handle) override { submitted.at(handle - 1).cancelled = true; }
  void Finish(uint64_t handle, wire::Finish finish) override {
    submitted.at(handle - 1).finish = std::move(finish);
  }
  PortHealth Health() const override { return health; }

  // Tokens of one request, one byte of `text` each, written by `author`.
  void SendText(const std::string& text, Author author = Author::kSmall, bool degraded = false) {
    std::vector<int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    SendIds(std::move(ids), author, degraded);
  }
  void SendIds(std::vector<int32_t> ids, Author author = Author::kSmall, bool degraded = false) {
    Submitted& request = addressee();
    LinkEvent event;
    event.base_position = request.committed;
    for (const int32_t id : ids) event.tokens.push_back({.id = id});
    Complete(author, &event);
    event.degraded = degraded;
    event.large_alone = large_alone;
    event.cached_tokens = cached_tokens;
    request.sink->OnEvent(std::move(event));
  }
  void SendFinish(api::FinishReason reason, std::vector<int32_t> ids = {}) {
    LinkEvent event;
    event.base_position = addressee().committed;
    for (const int32_t id : ids) event.tokens.push_back({.id = id});
    Complete(Author::kSmall, &event);
    event.finish.emplace();
    event.finish->set_position(addressee().committed);
    event.finish->set_reason(reason);
    addressee().sink->OnEvent(std::move(event));
  }
  void SendError(absl::Status error) {
    LinkEvent event;
    event.error = std::move(error);
    addressee().sink->OnEvent(std::move(event));
  }

  PortHealth health;
  bool refuses = false;
  size_t most = SIZE_MAX;     // Refuses once this many were submitted.
  std::optional<size_t> to;   // Whom the events go to; absent: the last submitted.
  bool large_alone = false;   // Marks what is sent.
  int32_t cached_tokens = 0;  // Sent with the events.
  std::vector<Submitted> submitted;

 private:
  Submitted& addressee() { return submitted.at(to.value_or(submitted.size() - 1)); }
  void Complete(Author author, LinkEvent* event) {
    for (TokenRecord& token : event->tokens) {
      token = {.id = token.id, .author = author, .entropy = 0.5f, .logprob = -1.0f};
    }
    addressee().committed += static_cast<int32_t>(event->tokens.size());
  }
};

}  // namespace tokenrouter
