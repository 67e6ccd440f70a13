// Our CPU engine as a MeasuredEngine, in this process. Its steps are those of a worker: greedy
// choices with entropy and log probability, normal priority.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/torch_engine/torch_engine.h"
#include "libs/weights/description/model_description.h"
#include "tests/bench/engine/measured_engine.h"

namespace tokenrouter {

// Multiply-adds of a model's linear layers.
struct LinearWork {
  explicit LinearWork(const ModelDescription& model);
  double per_token = 0;   // All layers.
  double per_choice = 0;  // The output matrix.
};

class OurEngine : public MeasuredEngine {
 public:
  static absl::StatusOr<std::unique_ptr<OurEngine>> Create(const std::string& path,
                                                           const std::string& format,
                                                           const std::string& kv_format,
                                                           int threads, const MeasuredSizes& sizes);
  absl::StatusOr<double> Prefill(int ids) override;
  absl::Status Fill(int rows, int context) override;
  absl::StatusOr<double> Decode(int rows, int context, int steps) override;
  absl::StatusOr<double> Extend(int rows, int context, int ids) override;
  double weight_bytes() const override;
  double kv_bytes_per_token() const override { return kv_bytes_per_token_; }
  std::string name() const override { return "ours"; }
  std::string format() const override { return format_; }
  std::string kv_format() const override { return kv_format_; }
  pid_t process() const override;

  const ModelDescription& model() const { return model_; }
  // The output matrix's part of weight_bytes().
  double head_bytes() const;

 private:
  OurEngine(ModelDescription model, std::string format, std::string kv_format,
            double kv_bytes_per_token, const MeasuredSizes& sizes);
  // One step of `ids` ids for each of `rows` rows behind their tokens in KV.
  absl::Status Step(int first_row, int rows, int ids, int choices);
  void Truncate(int rows, int context);

  const ModelDescription model_;
  const std::string format_, kv_format_;
  const double kv_bytes_per_token_;
  const int rows_;  // Most rows that KV can hold.
  std::vector<TokenId> ids_;
  std::unique_ptr<TorchEngine> engine_;
  SamplingContext sampling_;
  StepResult result_;
};

}  // namespace tokenrouter
