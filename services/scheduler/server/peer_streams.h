// PeerStreams connects the gRPC streams of one kind of peer to the scheduler's loop: frames that a
// stream receives are posted to the loop, frames that the loop sends are written without blocking.
// Ownership: the reactors delete themselves; this object must outlive all of them, so stop the
// server first. `loop` must outlive it.
// Threads: Accept runs on gRPC threads; everything else, and both handlers, on the loop.
// Limits: of one stream at most kReadWindowBytes wait for the loop (read_window.h): a peer that
// sends faster is slowed down by flow control. Errors: a peer that does not read what it is sent
// (kPendingFrames or pending_bytes wait) has its stream ended with RESOURCE_EXHAUSTED; so
// has one whose frame finds the mailbox full, which takes hundreds of streams that are all behind.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libs/concurrency/mutex.h"
#include "libs/concurrency/owner_loop.h"
#include "libs/rpc/server_stream.h"
#include "services/scheduler/options/core_options.h"

namespace tokenrouter {

template <typename In, typename Out>
class PeerStreams {
 public:
  using Stream = ServerStream<In, Out>;
  using Writer = StreamWriter<Out>;
  struct Handlers {
    std::function<void(StreamId, const In&)> on_frame;
    std::function<void(StreamId)> on_gone;
  };
  static constexpr size_t kPendingFrames = 4096;

  // `pending_bytes`: what one stream may have waiting to be written.
  PeerStreams(OwnerLoop* loop, Handlers handlers, size_t pending_bytes = kDefaultPendingBytes)
      : loop_(loop), handlers_(std::move(handlers)), pending_bytes_(pending_bytes) {}

  // The reactor of a new stream.
  Stream* Accept(grpc::CallbackServerContext* context) {
    return Stream::Start(
        context,
        [this](std::shared_ptr<Writer> writer) {
          auto peer = std::make_shared<Peer>();
          peer->id = next_id_.fetch_add(1);
          peer->writer = std::move(writer);
          return typename Stream::Handlers{.on_read =
                                               [this, peer](In frame, ReadCredit credit) {
                                                 Read(peer, std::move(frame), std::move(credit));
                                               },
                                           .on_closed = [this, peer] { Closed(peer); }};
        },
        kPendingFrames, pending_bytes_);
  }

  // Takes the content of `frame`.
  void Send(StreamId stream, Out* frame) {
    const auto found = peers_.find(stream);
    if (found == peers_.end()) return;
    Out content;
    content.Swap(frame);
    if (!found->second->writer->Write(std::move(content))) unwritable_.push_back(stream);
  }

  // Ends a stream that the core has forgotten; no on_gone follows.
  void Close(StreamId stream, const absl::Status& why) {
    const auto found = peers_.find(stream);
    if (found == peers_.end()) return;
    found->second->gone = true;
    found->second->writer->Finish(why);
    peers_.erase(found);
  }

  // Ends streams that could not be written to, and reports streams whose end found the mailbox
  // full. Call it after each batch. Returns whether any stream ended.
  bool Settle() {
    std::vector<std::shared_ptr<Peer>> ended;
    {
      MutexLock lock(&mutex_);
      ended.swap(unposted_);
    }
    for (const auto& peer : ended) Gone(peer);
    const std::vector<StreamId> unwritable = std::exchange(unwritable_, {});
    for (const StreamId stream : unwritable) {
      const auto found = peers_.find(stream);
      if (found == peers_.end()) continue;
      found->second->writer->Abandon(
          absl::ResourceExhaustedError("the peer does not read what it is sent"));
      Gone(std::shared_ptr<Peer>(found->second));
    }
    return !ended.empty() || !unwritable.empty();
  }

 private:
  struct Peer {
    StreamId id = 0;
    std::shared_ptr<Writer> writer;
    bool gone = false;  // Owned by the loop.
  };

  // The closure keeps the credit until it has run.
  void Read(const std::shared_ptr<Peer>& peer, In frame, ReadCredit credit) {
    const bool posted =
        loop_->Post([this, peer, frame = std::move(frame), credit = std::move(credit)] {
          if (peer->gone) return;
          peers_.try_emplace(peer->id, peer);
          handlers_.on_frame(peer->id, frame);
        });
    if (!posted) {
      peer->writer->Abandon(absl::ResourceExhaustedError("the scheduler's mailbox is full"));
    }
  }

  void Closed(const std::shared_ptr<Peer>& peer) {
    if (loop_->Post([this, peer] { Gone(peer); })) return;
    // At most one entry per stream.
    MutexLock lock(&mutex_);
    unposted_.push_back(peer);
  }

  void Gone(const std::shared_ptr<Peer>& peer) {
    if (peer->gone) return;
    peer->gone = true;
    if (peers_.erase(peer->id) > 0) handlers_.on_gone(peer->id);
  }

  OwnerLoop* const loop_;
  const Handlers handlers_;
  const size_t pending_bytes_;
  std::atomic<StreamId> next_id_{1};
  absl::flat_hash_map<StreamId, std::shared_ptr<Peer>> peers_;  // Owned by the loop.
  std::vector<StreamId> unwritable_;                            // Owned by the loop.
  Mutex mutex_;
  std::vector<std::shared_ptr<Peer>> unposted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokenrouter
