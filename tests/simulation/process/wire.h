// Wire is one simulated gRPC stream. Frames keep their order within a direction; between directions
// and streams no order is promised. A cut drops the frames in flight, and each end learns of it
// after its own delay. What a process has not read fills the wire: a sender that finds it full is
// told so and must end the stream, as the real writers do.
// Ownership: shared by both ends and by the events in flight.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "tests/simulation/process/event_queue.h"
#include "tests/simulation/process/random_source.h"

namespace tokenrouter::simulation {

struct WireDelays {
  absl::Duration low = absl::Microseconds(50);
  absl::Duration high = absl::Microseconds(400);
  double slow_share = 0.02;  // The share of frames that take up to `slow`.
  absl::Duration slow = absl::Milliseconds(20);
  int most_unread = 4096;  // Frames of one direction that were sent and not read.
};

// Up: client to server. Down: server to client.
template <typename Up, typename Down>
class Wire : public std::enable_shared_from_this<Wire<Up, Down>> {
 public:
  struct ServerEnd {
    std::function<void(const Up&)> on_frame;
    std::function<void()> on_gone;
  };
  struct ClientEnd {
    std::function<void(const Down&)> on_frame;
    std::function<void()> on_closed;
  };

  Wire(EventQueue* events, RandomSource* random, WireDelays delays)
      : events_(events), random_(random), delays_(delays) {}

  // An end that held this wire would keep it for ever.
  void SetServer(ServerEnd end) { server_ = std::move(end); }
  void SetClient(ClientEnd end) { client_ = std::move(end); }
  // The process at this end is dead or has moved on: it receives nothing any more.
  void DropServer() { server_ = {}; }
  void DropClient() { client_ = {}; }

  // False when the wire is full; the frame is lost then. The receiver reads each frame at once
  // unless it says otherwise (ServerDefers, ClientDefers).
  bool SendUp(const Up& frame) {
    if (unread_up_ >= delays_.most_unread) return false;
    ++unread_up_;
    Deliver(&last_up_, [self = this->shared_from_this(), frame] {
      --self->unread_up_;
      if (!self->cut_ && self->server_.on_frame) self->server_.on_frame(frame);
    });
    return true;
  }
  bool SendDown(const Down& frame) {
    if (unread_down_ >= delays_.most_unread) return false;
    ++unread_down_;
    Deliver(&last_down_, [self = this->shared_from_this(), frame] {
      --self->unread_down_;
      if (!self->cut_ && self->client_.on_frame) self->client_.on_frame(frame);
    });
    return true;
  }
  // The receiver leaves so many more frames unread, or has read them later (negative).
  void ServerDefers(int frames) { unread_up_ += frames; }
  void ClientDefers(int frames) { unread_down_ += frames; }
  // An orderly end, delivered after everything that was sent before it.
  void CloseFromServer() {
    Deliver(&last_down_, [self = this->shared_from_this()] { self->EndClient(); });
    DropServer();
  }
  void CloseFromClient() {
    Deliver(&last_up_, [self = this->shared_from_this()] { self->EndServer(); });
    DropClient();
  }
  // The network breaks; each end notices after its own delay.
  void Cut(absl::Duration client_notices, absl::Duration server_notices) {
    cut_ = true;
    events_->After(client_notices, [self = this->shared_from_this()] { self->EndClient(); });
    events_->After(server_notices, [self = this->shared_from_this()] { self->EndServer(); });
  }

 private:
  void Deliver(absl::Time* last, std::function<void()> action) {
    absl::Duration delay = random_->Between(delays_.low, delays_.high);
    if (random_->Chance(delays_.slow_share)) delay = random_->Between(delays_.high, delays_.slow);
    *last = std::max(*last, events_->now() + delay);
    events_->At(*last, std::move(action));
  }
  void EndClient() {
    const auto closed = std::exchange(client_, {}).on_closed;
    if (closed) closed();
  }
  void EndServer() {
    const auto gone = std::exchange(server_, {}).on_gone;
    if (gone) gone();
  }

  EventQueue* const events_;
  RandomSource* const random_;
  const WireDelays delays_;
  ServerEnd server_;
  ClientEnd client_;
  bool cut_ = false;
  int unread_up_ = 0;
  int unread_down_ = 0;
  absl::Time last_up_;
  absl::Time last_down_;
};

}  // namespace tokenrouter::simulation
