// Any bytes as a frame from the scheduler: the worker serves it or answers with an error, never
// crashes, and holds no block once everything is closed. The first byte picks role and lease.
#include <cstddef>
#include <cstdint>

#include "libs/status/check.h"
#include "libs/synthetic/synthetic_engine.h"
#include "libs/worker/core/worker_core.h"

namespace tokenrouter {
namespace {

constexpr int kSteps = 12;
constexpr int64_t kBlocks = 40;

class Harness {
 public:
  Harness(Role role, const std::string& device_key)
      : engine_({.model = {.role = role, .usable_ids = 64, .eos_ids = {9}, .eos_probability = 0.1},
                 .context_limit = 128,
                 .block_size = 4,
                 .total_blocks = kBlocks}),
        core_({.role = role,
               .device_key = device_key,
               .max_sequences = 4,
               .max_rows = 4,
               .max_step_tokens = kMaxVerify + 1},
              &engine_) {}

  void Attach(uint64_t term) {
    wire::CommandFrame frame;
    frame.set_term(term);
    frame.mutable_attached();  // Sequences that are not opened are freed at once.
    core_.Apply(frame, now_);
  }
  void Apply(const wire::CommandFrame& frame) { core_.Apply(frame, now_); }
  void Run(const wire::CommandFrame& meanwhile) {
    for (int i = 0; i < kSteps; ++i) {
      now_ += absl::Milliseconds(1);
      std::optional<PlannedStep> step = core_.Plan(now_);
      if (step.has_value()) {
        core_.Execute(&*step).IgnoreError();
        if (i == kSteps / 2) core_.Apply(meanwhile, now_);
        Check(core_.Complete(*std::move(step), now_));
      } else if (const auto said = core_.TakePending(now_)) {
        Check(*said);
      }
    }
  }
  void End() {
    core_.Detach();
    Attach(core_.term());
    core_.TakePending(now_ + absl::Hours(24 * 365));
    TR_CHECK(core_.store().size() == 0);
    TR_CHECK(core_.store().free_blocks() == kBlocks) << core_.store().free_blocks();
  }

 private:
  void Check(const wire::WorkerFrame& frame) const {
    TR_CHECK(frame.term() == core_.term());
    for (const wire::RowReport& row : frame.rows()) {
      TR_CHECK(row.ids_size() == row.entropies_size() && row.ids_size() == row.logprobs_size());
      TR_CHECK(row.ids_size() == static_cast<int>(row.authors().size()));
      TR_CHECK(!row.has_finish() || !row.has_handoff());
    }
  }

  SyntheticEngine engine_;
  WorkerCore core_;
  absl::Time now_ = absl::UnixEpoch();
};

}  // namespace
}  // namespace tokenrouter

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokenrouter;
  if (size == 0) return 0;
  wire::CommandFrame frame;
  if (!frame.ParseFromArray(data + 1, static_cast<int>(size - 1))) return 0;
  Harness worker(data[0] % 2 == 0 ? Role::kSmall : Role::kLarge, data[0] % 3 == 0 ? "shared" : "");
  worker.Attach(frame.term());
  worker.Apply(frame);
  worker.Run(frame);
  worker.Apply(frame);
  worker.Run({});
  worker.End();
  return 0;
}
