// The fixture of the tests of WorkerCore: a core on a FakeEngine, and short ways to write commands.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/routing/wire_types.h"
#include "libs/status/status_matchers.h"
#include "libs/synthetic/fake_engine.h"
#include "libs/worker/core/worker_core.h"

namespace tokenrouter {

inline wire::GenerationSpec Spec(const std::string& id, const std::string& algorithm,
                                 int32_t max_new = 20) {
  wire::GenerationSpec spec;
  spec.set_request_id(id);
  spec.mutable_routing()->set_algorithm(algorithm);
  spec.mutable_sampling()->set_temperature(0);
  spec.mutable_sampling()->set_seed(5);
  spec.mutable_stop()->set_max_new_tokens(max_new);
  return spec;
}

inline wire::CommandFrame Commands(uint64_t term = 1) {
  wire::CommandFrame frame;
  frame.set_term(term);
  return frame;
}

inline wire::Open OpenOf(uint64_t request, const wire::GenerationSpec& spec,
                         std::vector<TokenId> ids, bool granted = true, uint32_t epoch = 1) {
  wire::Open open;
  open.set_request(request);
  open.set_epoch(epoch);
  *open.mutable_spec() = spec;
  if (spec.prompt_length() == 0) open.mutable_spec()->set_prompt_length(ids.size());
  open.mutable_ids()->Add(ids.begin(), ids.end());
  if (granted) *open.mutable_grant()->mutable_window() = ToWire(Window::OwnRule());
  return open;
}

class WorkerCoreTest : public ::testing::Test {
 protected:
  void Start(WorkerCoreOptions options = {}, int64_t total_blocks = 1000) {
    options.worker_id = "w";
    engine_ = std::make_unique<FakeEngine>(SyntheticEngineOptions{.model = {.usable_ids = 50},
                                                                  .context_limit = 256,
                                                                  .block_size = 4,
                                                                  .total_blocks = total_blocks});
    core_ = std::make_unique<WorkerCore>(options, engine_.get());
  }
  void Attach(uint64_t term = 1, int32_t keep_unclaimed_ms = 1000) {
    wire::CommandFrame frame = Commands(term);
    frame.mutable_attached()->set_keep_unclaimed_ms(keep_unclaimed_ms);
    core_->Apply(frame, now_);
  }
  void Open(const wire::Open& open, uint64_t term = 1) {
    wire::CommandFrame frame = Commands(term);
    *frame.add_opens() = open;
    core_->Apply(frame, now_);
  }
  void Close(uint64_t request, uint32_t epoch = 1) {
    wire::CommandFrame frame = Commands();
    frame.add_closes()->set_request(request);
    frame.mutable_closes(0)->set_epoch(epoch);
    core_->Apply(frame, now_);
  }
  // The frame of one step; nothing when none can run.
  std::optional<wire::WorkerFrame> Step() {
    std::optional<PlannedStep> step = core_->Plan(now_);
    if (!step.has_value()) return std::nullopt;
    core_->Execute(&*step).IgnoreError();
    now_ += absl::Milliseconds(2);
    return core_->Complete(*std::move(step), now_);
  }

  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<WorkerCore> core_;
  absl::Time now_ = absl::UnixEpoch();
};

}  // namespace tokenrouter
