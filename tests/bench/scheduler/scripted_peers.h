// Peers of the scheduler for its bench. They follow the protocol, compute nothing and answer as
// fast as they are asked. Threads: not thread-safe; one thread, or one stream's callbacks, per
// object.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter::bench {

// Decodes one token per row and step. A small worker hands off every `hand_off_every`-th token of a
// request to the large side; a large worker decodes one token and hands back.
class ScriptedWorker {
 public:
  // `hand_off_every` 0: never.
  ScriptedWorker(Role role, int number, int rows_per_frame, int hand_off_every)
      : role_(role), number_(number), rows_(rows_per_frame), depart_every_(hand_off_every) {}

  wire::WorkerFrame Hello() const;
  void Apply(const wire::CommandFrame& frame);
  // The next step; nothing when no row may run.
  std::optional<wire::WorkerFrame> Step();

 private:
  struct Row {
    uint32_t epoch = 0;
    Position committed = 0;
    Position credit = 0;
    bool running = false;
    bool has_grant = false;
  };
  void Write(uint64_t request, Row* row, wire::WorkerFrame* frame);

  const Role role_;
  const int number_;
  const int rows_;
  const int depart_every_;
  uint64_t term_ = 0;
  uint64_t steps_ = 0;
  std::map<uint64_t, Row> sequences_;
  uint64_t last_ = 0;  // Rows alternate when more are ready than a frame holds.
  std::vector<uint64_t> closed_;
};

// Keeps `requests` requests in flight and acknowledges what it gets.
class ScriptedGateway {
 public:
  ScriptedGateway(int requests, int prompt_tokens, int new_tokens, std::string algorithm)
      : requests_(requests),
        prompt_tokens_(prompt_tokens),
        new_tokens_(new_tokens),
        algorithm_(std::move(algorithm)) {}

  wire::GatewayFrame Hello() const;
  void Apply(const wire::SchedulerFrame& frame);
  // The frame to send: submits and, when `acknowledge`, acknowledgements.
  std::optional<wire::GatewayFrame> Take(bool acknowledge);

  uint64_t tokens() const { return tokens_; }
  uint64_t finished() const { return finished_; }
  uint64_t rejected() const { return rejected_; }

 private:
  wire::Submit MakeSubmit();

  const int requests_;
  const int prompt_tokens_;
  const int new_tokens_;
  const std::string algorithm_;
  uint64_t term_ = 0;
  uint64_t next_handle_ = 1;
  int live_ = 0;
  uint64_t tokens_ = 0;
  uint64_t finished_ = 0;
  uint64_t rejected_ = 0;
  absl::flat_hash_map<uint64_t, Position> unacknowledged_;
};

}  // namespace tokenrouter::bench
