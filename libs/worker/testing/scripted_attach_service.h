// ScriptedAttachService is a test double of the scheduler's side of Attach: it greets every worker,
// keeps the frames of the workers, and lets a test send frames or break the stream.
// Threads: thread-safe. Waits are bounded by kPatience and never sleep.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/concurrency/mutex.h"
#include "libs/rpc/server_runtime.h"
#include "libs/rpc/server_stream.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/scheduler.grpc.pb.h"

namespace tokenrouter {

class ScriptedAttachService : public wire::Scheduler::CallbackService {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(20);
  using Stream = ServerStream<wire::WorkerFrame, wire::CommandFrame>;

  grpc::ServerBidiReactor<wire::WorkerFrame, wire::CommandFrame>* Attach(
      grpc::CallbackServerContext* context) override {
    return Stream::Start(context, [this](std::shared_ptr<Stream::Writer> writer) {
      return Stream::Handlers{[this, writer](wire::WorkerFrame frame, const ReadCredit&) {
                                OnFrame(writer, std::move(frame));
                              },
                              [] {}};
    });
  }

  void SetAttached(const wire::Attached& attached) {
    MutexLock lock(&mutex_);
    attached_ = attached;
  }
  // Answered to the next hellos instead of Attached.
  void SetRefusal(const absl::Status& refusal) {
    MutexLock lock(&mutex_);
    refusal_ = refusal;
  }

  // The term is filled in.
  void Send(wire::CommandFrame frame) {
    MutexLock lock(&mutex_);
    frame.set_term(term_);
    if (writer_ != nullptr && !writer_->Write(std::move(frame))) writer_ = nullptr;
  }
  void BreakStream() {
    std::shared_ptr<Stream::Writer> writer;
    {
      MutexLock lock(&mutex_);
      writer = writer_;
    }
    if (writer != nullptr) writer->Finish(absl::UnavailableError("broken by the test"));
  }

  // Waits until a frame of those so far, or to come, satisfies `wanted`. False after kPatience,
  // however many others arrive.
  bool WaitFor(const std::function<bool(const wire::WorkerFrame&)>& wanted) {
    const absl::Time deadline = absl::Now() + kPatience;
    MutexLock lock(&mutex_);
    size_t seen = 0;
    while (true) {
      for (; seen < frames_.size(); ++seen) {
        if (wanted(frames_[seen])) return true;
      }
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) return false;
      arrived_.WaitFor(&mutex_, left);
    }
  }
  void ForgetFrames() {
    MutexLock lock(&mutex_);
    frames_.clear();
  }

 private:
  void OnFrame(const std::shared_ptr<Stream::Writer>& writer, wire::WorkerFrame frame) {
    MutexLock lock(&mutex_);
    if (frame.has_hello()) {
      if (!refusal_.ok()) {
        writer->Finish(refusal_);
      } else {
        writer_ = writer;
        wire::CommandFrame greeting;
        greeting.set_term(++term_);
        *greeting.mutable_attached() = attached_;
        if (!writer->Write(std::move(greeting))) writer_ = nullptr;
      }
    }
    frames_.push_back(std::move(frame));
    arrived_.SignalAll();
  }

  Mutex mutex_;
  CondVar arrived_;
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 100;
  wire::Attached attached_ ABSL_GUARDED_BY(mutex_);
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Stream::Writer> writer_ ABSL_GUARDED_BY(mutex_);
  std::vector<wire::WorkerFrame> frames_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokenrouter
