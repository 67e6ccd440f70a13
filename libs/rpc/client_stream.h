// ClientStream is the client's end of one bidirectional stream (callback API).
// Ownership: deletes itself in OnDone. Users keep the writer, never the reactor, and the channel
// until on_closed has run: it must not be a gRPC thread that lets go of it (open_channels.h).
// Threads: on_read and on_closed run on gRPC threads, never two at once, and must not block.
// on_closed runs exactly once, last, with the status of the call: OK after a clean end, UNAVAILABLE
// when the server could not be reached or vanished. Nothing of the stream holds the channel by
// then. Limits: as for ServerStream.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "libs/rpc/grpc_status.h"
#include "libs/rpc/message_bytes.h"
#include "libs/rpc/read_window.h"
#include "libs/rpc/stream_writer.h"

namespace tokenrouter {

template <typename Out, typename In>
class ClientStream final : public grpc::ClientBidiReactor<Out, In> {
 public:
  using Writer = StreamWriter<Out>;
  using Reactor = grpc::ClientBidiReactor<Out, In>;
  struct Handlers {
    // Whoever passes the message on keeps the credit until it has been handled.
    std::function<void(In, ReadCredit)> on_read;
    std::function<void(const absl::Status&)> on_closed;
  };

  // `begin` starts the call, e.g. [stub](auto* context, auto* reactor) {
  // stub->async()->Attach(context, reactor); }. Writer::Finish first writes what is queued, then
  // cancels the call, so the peer may not get to read the last of it; Writer::Abandon cancels at
  // once.
  static std::shared_ptr<Writer> Start(
      const std::function<void(grpc::ClientContext*, Reactor*)>& begin, Handlers handlers,
      size_t pending_limit = kDefaultPendingWrites, size_t pending_bytes = kDefaultPendingBytes) {
    auto* stream = new ClientStream(std::move(handlers), pending_limit, pending_bytes);
    const std::shared_ptr<Writer> writer = stream->writer_;
    begin(stream->context_.get(), stream);
    stream->AddHold();  // Reads and writes come from outside reactions until the writer ends.
    stream->window_->Next();
    stream->StartCall();
    return writer;
  }

 private:
  ClientStream(Handlers handlers, size_t pending_limit, size_t pending_bytes)
      : handlers_(std::move(handlers)),
        writer_(std::make_shared<Writer>(
            typename Writer::Operations{[this](const Out* message) { this->StartWrite(message); },
                                        [this](const absl::Status&) { OnWriterFinished(); },
                                        [context = context_] { context->TryCancel(); }},
            pending_limit, pending_bytes)) {}

  void OnReadDone(bool ok) override {
    if (!ok) {
      writer_->Break();
      writer_->Finish(absl::OkStatus());
      return;
    }
    if (window_->closed()) return;  // Ended from this side: what still comes is dropped.
    ReadCredit credit = window_->Hold(MessageBytes(incoming_));
    handlers_.on_read(std::exchange(incoming_, In()), std::move(credit));
    window_->Next();
  }
  void OnWriteDone(bool ok) override { writer_->OnWriteDone(ok); }

  // No write is in flight and no read or write can start any more: the hold may go, and a call
  // still open is cancelled.
  void OnWriterFinished() {
    window_->Close();
    context_->TryCancel();
    this->RemoveHold();
  }

  void OnDone(const grpc::Status& status) override {
    const absl::Status reason = FromGrpcStatus(status);
    const auto on_closed = std::move(handlers_.on_closed);
    delete this;
    on_closed(reason);
  }

  // Shared with the writer, whose users may cancel the call when the reactor is gone.
  const std::shared_ptr<grpc::ClientContext> context_ = std::make_shared<grpc::ClientContext>();
  const std::shared_ptr<ReadWindow> window_ =
      std::make_shared<ReadWindow>([this] { this->StartRead(&incoming_); }, kReadWindowBytes);
  Handlers handlers_;
  std::shared_ptr<Writer> writer_;
  In incoming_;
};

}  // namespace tokenrouter
