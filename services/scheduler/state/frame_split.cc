#include "services/scheduler/state/frame_split.h"

#include <cstdint>

namespace tokenrouter {
namespace {

// No message of bare numbers is larger: release, credit, close.
constexpr size_t kNumbersBytes = 32;
// Around an Extend or a chunk's ids: numbers, the algorithm's state, a decode grant.
constexpr size_t kFieldsBytes = 256;
// Of an id on the wire at most; of a chunk's id with author, entropy and logprob.
constexpr size_t kIdBytes = 5;
constexpr size_t kChunkIdBytes = 14;
// Tag and length of a message in its frame at most.
constexpr size_t kHeadBytes = 6;

// Upper bounds of a frame's size; an exact size would be one more pass over every id.
size_t MostBytes(const wire::CommandFrame& frame) {
  size_t bytes = kFieldsBytes + static_cast<size_t>(frame.attached().stop_ids_size()) * kIdBytes;
  for (const wire::Open& open : frame.opens()) bytes += open.ByteSizeLong() + kHeadBytes;
  for (const wire::Extend& extend : frame.extends()) {
    bytes += kFieldsBytes + static_cast<size_t>(extend.ids_size()) * kIdBytes;
  }
  const int numbers = frame.releases_size() + frame.credits_size() + frame.closes_size();
  return bytes + static_cast<size_t>(numbers) * kNumbersBytes;
}

size_t MostBytes(const wire::SchedulerFrame& frame) {
  size_t bytes = 0;
  for (const wire::TokenChunk& chunk : frame.chunks()) {
    bytes += kFieldsBytes + static_cast<size_t>(chunk.ids_size()) * kChunkIdBytes +
             chunk.finish().detail().size();
  }
  for (const wire::Rejection& rejection : frame.rejections()) {
    bytes += kFieldsBytes + rejection.message().size();
  }
  return bytes;
}

// Fills one part after the other.
template <typename Frame>
class Parts {
 public:
  Parts(uint64_t term, size_t limit, const std::function<void(Frame*)>& send)
      : term_(term), limit_(limit), send_(send) {}

  // The part that takes the next message of so many bytes.
  Frame& For(size_t bytes) {
    bytes += kHeadBytes;
    if (bytes_ > 0 && bytes_ + bytes > limit_) Send();
    bytes_ += bytes;
    return part_;
  }
  void Send() {
    part_.set_term(term_);
    send_(&part_);
    part_.Clear();
    bytes_ = 0;
    ++sent_;
  }
  int sent() const { return sent_; }

 private:
  const uint64_t term_;
  const size_t limit_;
  const std::function<void(Frame*)>& send_;
  Frame part_;
  size_t bytes_ = 0;
  int sent_ = 0;
};

}  // namespace

int SendSplit(wire::CommandFrame* frame, size_t limit,
              const std::function<void(wire::CommandFrame*)>& send) {
  if (MostBytes(*frame) <= limit) {
    send(frame);
    return 1;
  }
  Parts<wire::CommandFrame> parts(frame->term(), limit, send);
  // As WorkerCore applies a frame: Attached, opens, extends, releases, credits, closes, the rest.
  if (frame->has_attached()) {
    parts.For(frame->attached().ByteSizeLong()).mutable_attached()->Swap(frame->mutable_attached());
  }
  for (wire::Open& open : *frame->mutable_opens()) {
    parts.For(open.ByteSizeLong()).add_opens()->Swap(&open);
  }
  for (wire::Extend& extend : *frame->mutable_extends()) {
    parts.For(extend.ByteSizeLong()).add_extends()->Swap(&extend);
  }
  for (const uint64_t release : frame->releases()) parts.For(kNumbersBytes).add_releases(release);
  for (wire::Credit& credit : *frame->mutable_credits()) {
    parts.For(kNumbersBytes).add_credits()->Swap(&credit);
  }
  for (wire::Close& close : *frame->mutable_closes()) {
    parts.For(kNumbersBytes).add_closes()->Swap(&close);
  }
  wire::CommandFrame& last = parts.For(kFieldsBytes);
  if (frame->has_lease()) last.mutable_lease()->Swap(frame->mutable_lease());
  if (frame->has_peer_step()) last.mutable_peer_step()->Swap(frame->mutable_peer_step());
  if (frame->has_deferral()) last.mutable_deferral()->Swap(frame->mutable_deferral());
  if (frame->drain()) last.set_drain(true);
  parts.Send();
  frame->Clear();
  return parts.sent();
}

int SendSplit(wire::SchedulerFrame* frame, size_t limit,
              const std::function<void(wire::SchedulerFrame*)>& send) {
  if (MostBytes(*frame) <= limit) {
    send(frame);
    return 1;
  }
  Parts<wire::SchedulerFrame> parts(frame->term(), limit, send);
  // As SchedulerLinkCore applies a frame: Welcome, the pair, chunks, rejections.
  if (frame->has_welcome()) {
    parts.For(frame->welcome().ByteSizeLong()).mutable_welcome()->Swap(frame->mutable_welcome());
  }
  if (frame->has_pair()) {
    parts.For(frame->pair().ByteSizeLong()).mutable_pair()->Swap(frame->mutable_pair());
  }
  for (wire::TokenChunk& chunk : *frame->mutable_chunks()) {
    parts.For(chunk.ByteSizeLong()).add_chunks()->Swap(&chunk);
  }
  for (wire::Rejection& rejection : *frame->mutable_rejections()) {
    parts.For(rejection.ByteSizeLong()).add_rejections()->Swap(&rejection);
  }
  parts.Send();
  frame->Clear();
  return parts.sent();
}

}  // namespace tokenrouter
