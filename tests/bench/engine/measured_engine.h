// One engine with one model as engine_bench times it, ours or the peer.
// Ownership: owns the model. Threads: one. Units: milliseconds; bytes. Rows are sequences
// 0 to rows - 1.
// Errors: those of the engine; UNAVAILABLE when a peer's process ended.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace tokenrouter {

// The KV capacity that an engine is made with.
struct MeasuredSizes {
  int rows = 0;
  int tokens = 0;  // Of each row.
  int prompt = 0;  // Longest prefill.
};

class MeasuredEngine {
 public:
  virtual ~MeasuredEngine() = default;
  // A prompt of `ids` ids on an empty KV, with one choice at its end. Rows are empty afterwards.
  virtual absl::StatusOr<double> Prefill(int ids) = 0;
  // Gives each of `rows` rows `context` tokens in separate KV memory.
  virtual absl::Status Fill(int rows, int context) = 0;
  // `steps` steps of one id and one greedy choice per row after one that is not timed.
  // REQUIRES: Fill(at least rows, context) came before, here and below.
  virtual absl::StatusOr<double> Decode(int rows, int context, int steps) = 0;
  // One step of `ids` ids and one greedy choice per row.
  virtual absl::StatusOr<double> Extend(int rows, int context, int ids) = 0;

  // The bytes of weights that every step must read.
  virtual double weight_bytes() const = 0;
  virtual double kv_bytes_per_token() const = 0;
  virtual std::string name() const = 0;    // "ours" or "llama.cpp".
  virtual std::string format() const = 0;  // Of the weights.
  virtual std::string kv_format() const = 0;
  virtual pid_t process() const = 0;  // That computes.
};

}  // namespace tokenrouter
