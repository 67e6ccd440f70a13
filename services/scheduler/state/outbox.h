// Outbox gathers what one batch of input produces, one frame per peer, and hands each frame out at
// Flush, in several parts where it is larger than kMaxFrameBytes (frame_split.h). Output is the
// other end: streams in the server, the simulated network in the simulator. Ownership: owns the
// frames; they are cleared, not freed, between batches, so that their memory is reused. An Output
// may swap a frame's content away. Threads: lives on the scheduler's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "libs/tokens/frame_limit.h"
#include "proto/packages.h"
#include "services/scheduler/options/core_options.h"
#include "services/scheduler/state/frame_split.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

class Output {
 public:
  virtual ~Output() = default;
  virtual void ToGateway(StreamId stream, wire::SchedulerFrame* frame) = 0;
  virtual void ToWorker(StreamId stream, wire::CommandFrame* frame) = 0;
  // Ends a stream from this side. A stream that has ended already is ignored. The core has
  // forgotten the stream and needs no notice of its end.
  virtual void CloseGateway(StreamId stream, const absl::Status& why) = 0;
  virtual void CloseWorker(StreamId stream, const absl::Status& why) = 0;
};

template <typename Frame>
class OutFrames {
 public:
  // The frame that is being filled for this peer.
  Frame& Get(StreamId stream) {
    auto& slot = slots_[stream];
    if (slot == nullptr) slot = std::make_unique<Slot>();
    if (!slot->dirty) {
      slot->dirty = true;
      dirty_.push_back(stream);
    }
    return slot->frame;
  }
  // Drops what was not yet sent to this peer.
  void Forget(StreamId stream) { slots_.erase(stream); }

  // Calls send(stream, Frame*) in the order in which peers were first written to. Returns how
  // often.
  template <typename Send>
  int Flush(uint64_t term, const Send& send) {
    int sent = 0;
    for (const StreamId stream : dirty_) {
      const auto found = slots_.find(stream);
      if (found == slots_.end() || !found->second->dirty) continue;
      Slot& slot = *found->second;
      slot.dirty = false;
      slot.frame.set_term(term);
      sent += SendSplit(&slot.frame, kMaxFrameBytes,
                        [&send, stream](Frame* frame) { send(stream, frame); });
      slot.frame.Clear();
    }
    dirty_.clear();
    return sent;
  }

 private:
  struct Slot {
    Frame frame;
    bool dirty = false;
  };
  absl::flat_hash_map<StreamId, std::unique_ptr<Slot>> slots_;
  std::vector<StreamId> dirty_;
};

struct Outbox {
  OutFrames<wire::SchedulerFrame> gateways;
  OutFrames<wire::CommandFrame> workers;
};

}  // namespace tokenrouter
