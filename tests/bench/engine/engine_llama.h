// llama.cpp as a MeasuredEngine: the process llama_cpp_peer, which takes commands as lines.
// Ownership: owns the process; the destructor closes its input, which ends it, and reaps it.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tests/bench/engine/measured_engine.h"

namespace tokenrouter {

// The peer format of one of ours with the same bits, e.g. "Q8_0" of "int8". INVALID_ARGUMENT for a
// format without one.
absl::StatusOr<std::string> PeerFormatOf(const std::string& format);

class LlamaEngine : public MeasuredEngine {
 public:
  // `model`: a GGUF file. Unless `format` is the file's own, its weights are written anew in that
  // format, once, into a file beside `program`.
  static absl::StatusOr<std::unique_ptr<LlamaEngine>> Start(const std::string& program,
                                                            const std::string& model,
                                                            const std::string& format, int threads,
                                                            const MeasuredSizes& sizes);
  ~LlamaEngine() override;
  absl::StatusOr<double> Prefill(int ids) override;
  absl::Status Fill(int rows, int context) override;
  absl::StatusOr<double> Decode(int rows, int context, int steps) override;
  absl::StatusOr<double> Extend(int rows, int context, int ids) override;
  double weight_bytes() const override { return weight_bytes_; }
  double kv_bytes_per_token() const override { return kv_bytes_per_token_; }
  std::string name() const override { return "llama.cpp"; }
  std::string format() const override { return format_; }
  std::string kv_format() const override { return "fp16"; }
  pid_t process() const override { return process_; }

 private:
  LlamaEngine(pid_t process, std::FILE* to, std::FILE* from, std::string format);
  // UNAVAILABLE when the process ended or was silent for too long.
  absl::StatusOr<std::string> ReadLine();
  absl::StatusOr<double> Ask(const std::string& line);

  const pid_t process_;
  std::FILE* const to_;
  std::FILE* const from_;
  const std::string format_;
  double weight_bytes_ = 0;
  double kv_bytes_per_token_ = 0;
};

}  // namespace tokenrouter
