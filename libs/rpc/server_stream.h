// ServerStream is the server's end of one bidirectional stream (callback API). Reads flow to
// on_read one at a time, in order; writes go through the shared StreamWriter. Ownership: deletes
// itself in OnDone. Users keep writer(), never the reactor. Threads: on_read and on_closed run on
// gRPC threads, never two at once, and must not block. on_closed runs exactly once, after the last
// on_read, when the client has ended its side, cancelled or vanished; the stream is then finished.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <utility>

#include "libs/rpc/grpc_status.h"
#include "libs/rpc/stream_writer.h"

namespace tokenrouter {

template <typename In, typename Out>
class ServerStream final : public grpc::ServerBidiReactor<In, Out> {
 public:
  using Writer = StreamWriter<Out>;
  struct Handlers {
    std::function<void(In)> on_read;
    std::function<void()> on_closed;
  };

  // `make_handlers` gets the writer before the first read. Returns the reactor for gRPC to run.
  static ServerStream* Start(const std::function<Handlers(std::shared_ptr<Writer>)>& make_handlers,
                             size_t pending_limit = kDefaultPendingWrites) {
    auto* stream = new ServerStream(pending_limit);
    stream->handlers_ = make_handlers(stream->writer_);
    stream->StartRead(&stream->incoming_);
    return stream;
  }

 private:
  explicit ServerStream(size_t pending_limit)
      : writer_(std::make_shared<Writer>(
            typename Writer::Operations{
                [this](const Out* message) { this->StartWrite(message); },
                [this](const absl::Status& status) { this->Finish(ToGrpcStatus(status)); }},
            pending_limit)) {}

  void OnReadDone(bool ok) override {
    if (ok) {
      handlers_.on_read(std::exchange(incoming_, In()));
      this->StartRead(&incoming_);
      return;
    }
    handlers_.on_closed();
    writer_->Break();
    writer_->Finish(absl::OkStatus());
  }
  void OnWriteDone(bool ok) override { writer_->OnWriteDone(ok); }
  void OnDone() override { delete this; }

  Handlers handlers_;
  std::shared_ptr<Writer> writer_;
  In incoming_;
};

}  // namespace tokenrouter
