// ServerStream is the server's end of one bidirectional stream (callback API). Reads flow to
// on_read one at a time, in order; writes go through the shared StreamWriter.
// Ownership: deletes itself in OnDone. Users keep writer(), never the reactor.
// Threads: on_read and on_closed run on gRPC threads, never two at once, and must not block.
// on_closed runs exactly once, after the last on_read, when the client has ended its side,
// cancelled or vanished, or the writer has ended the stream; it is then finished.
// Limits: messages whose credits are kept fill the read window (read_window.h), then nothing is
// read until one is let go of; what waits to be written is bounded as StreamWriter says.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "libs/concurrency/mutex.h"
#include "libs/rpc/grpc_status.h"
#include "libs/rpc/message_bytes.h"
#include "libs/rpc/read_window.h"
#include "libs/rpc/stream_writer.h"

namespace tokenrouter {

template <typename In, typename Out>
class ServerStream final : public grpc::ServerBidiReactor<In, Out> {
 public:
  using Writer = StreamWriter<Out>;
  struct Handlers {
    // Whoever passes the message on keeps the credit until it has been handled.
    std::function<void(In, ReadCredit)> on_read;
    std::function<void()> on_closed;
  };

  // `make_handlers` gets the writer before the first read. Returns the reactor for gRPC to run.
  // Writer::Abandon cancels the call when its peer does not read; no on_read follows.
  static ServerStream* Start(grpc::CallbackServerContext* context,
                             const std::function<Handlers(std::shared_ptr<Writer>)>& make_handlers,
                             size_t pending_limit = kDefaultPendingWrites,
                             size_t pending_bytes = kDefaultPendingBytes) {
    auto* stream = new ServerStream(context, pending_limit, pending_bytes);
    stream->handlers_ = make_handlers(stream->writer_);
    stream->window_->Next();
    return stream;
  }

 private:
  // The context lives as long as the reactor, the writer longer.
  struct Call {
    Mutex mutex;
    grpc::CallbackServerContext* context ABSL_GUARDED_BY(mutex) = nullptr;
    void Cancel() {
      MutexLock lock(&mutex);
      if (context != nullptr) context->TryCancel();
    }
    void End() {
      MutexLock lock(&mutex);
      context = nullptr;
    }
  };

  ServerStream(grpc::CallbackServerContext* context, size_t pending_limit, size_t pending_bytes)
      : writer_(std::make_shared<Writer>(
            typename Writer::Operations{[this](const Out* message) { this->StartWrite(message); },
                                        [this, window = window_](const absl::Status& status) {
                                          // A read may begin no more once gRPC is free to end the
                                          // call.
                                          window->Close();
                                          this->Finish(ToGrpcStatus(status));
                                        },
                                        [call = call_, window = window_] {
                                          window->Close();
                                          call->Cancel();
                                        }},
            pending_limit, pending_bytes)) {
    MutexLock lock(&call_->mutex);
    call_->context = context;
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Closed();
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
  void OnDone() override {
    call_->End();
    Closed();  // No read was under way that could have said so.
    delete this;
  }

  void Closed() {
    if (std::exchange(closed_, true)) return;
    handlers_.on_closed();
  }

  const std::shared_ptr<Call> call_ = std::make_shared<Call>();
  const std::shared_ptr<ReadWindow> window_ =
      std::make_shared<ReadWindow>([this] { this->StartRead(&incoming_); }, kReadWindowBytes);
  Handlers handlers_;
  std::shared_ptr<Writer> writer_;
  In incoming_;
  bool closed_ = false;
};

}  // namespace tokenrouter
