// GenerateReactor is one gRPC Generate call: it pulls a Generation and writes replies, one in
// flight. Ownership: keeps itself alive from Begin until OnDone; posted work and wakes hold it
// weakly or for their own time. Threads: gRPC's reactions and the posted pumps meet under its
// mutex; gRPC is called outside it.
#pragma once

#include <functional>
#include <memory>

#include "libs/concurrency/mutex.h"
#include "proto/packages.h"
#include "services/gateway/generation/generation.h"
#include "tokenrouter/generation/v1/generation.grpc.pb.h"

namespace tokenrouter {

class GenerateReactor final : public grpc::ServerWriteReactor<api::GenerateReply>,
                              public std::enable_shared_from_this<GenerateReactor> {
 public:
  using Post = std::function<void(std::function<void()>)>;
  // Called with the status of the call once it is decided.
  using OnEnd = std::function<void(const absl::Status&)>;

  GenerateReactor(Post post, OnEnd on_end, bool return_routing)
      : post_(std::move(post)), on_end_(std::move(on_end)), return_routing_(return_routing) {}

  void Begin();
  // Exactly one of these two follows; Fail may also come later.
  void Adopt(std::unique_ptr<Generation> generation);
  void Fail(const absl::Status& status);
  // There may be something new; any thread.
  void SchedulePump();

 private:
  enum class Next { kNothing, kWrite, kFinish };

  void Pump();
  Next Decide(absl::Status* status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddPiece(const TextPiece& piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const absl::Status& status);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  const Post post_;
  const OnEnd on_end_;
  const bool return_routing_;
  api::GenerateReply reply_;  // Filled under the mutex, gRPC's while writing_.
  Mutex mutex_;
  std::shared_ptr<GenerateReactor> self_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Generation> generation_ ABSL_GUARDED_BY(mutex_);
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  bool has_reply_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;       // The generation has ended.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;  // The client has left.
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;   // Finish was called.
};

}  // namespace tokenrouter
