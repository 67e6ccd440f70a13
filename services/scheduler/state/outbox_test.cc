#include "services/scheduler/state/outbox.h"

#include <gtest/gtest.h>

#include <vector>

#include "libs/tokens/frame_limit.h"

namespace tokenrouter {
namespace {

constexpr StreamId kStream = 7;
constexpr uint64_t kTerm = 5;
constexpr int kIds = 8192;
constexpr uint64_t kRequests = 512;

template <typename Frame>
std::vector<Frame> Flush(OutFrames<Frame>* frames) {
  std::vector<Frame> sent;
  const int count = frames->Flush(kTerm, [&sent](StreamId stream, Frame* frame) {
    EXPECT_EQ(stream, kStream);
    sent.push_back(*frame);
  });
  EXPECT_EQ(static_cast<size_t>(count), sent.size());
  return sent;
}

// What the parts say together, each of which gRPC takes.
template <typename Frame>
Frame Together(const std::vector<Frame>& parts) {
  Frame all;
  for (const Frame& part : parts) {
    EXPECT_LE(part.ByteSizeLong(), kMaxFrameBytes);
    EXPECT_EQ(part.term(), kTerm);
    all.MergeFrom(part);
  }
  return all;
}

void AddOpen(wire::CommandFrame* frame, uint64_t request) {
  wire::Open* const open = frame->add_opens();
  open->set_request(request);
  for (int i = 0; i < kIds; ++i) open->add_ids(150000 + i);
}

TEST(Outbox, SplitsABurstOfOpensIntoFramesThatFit) {
  OutFrames<wire::CommandFrame> frames;
  for (uint64_t request = 0; request < kRequests; ++request) {
    AddOpen(&frames.Get(kStream), request);
  }
  wire::CommandFrame whole = frames.Get(kStream);
  whole.set_term(kTerm);
  EXPECT_GT(whole.ByteSizeLong(), kMaxFrameBytes);
  const std::vector<wire::CommandFrame> sent = Flush(&frames);
  EXPECT_GT(sent.size(), 1u);
  EXPECT_EQ(Together(sent).SerializeAsString(), whole.SerializeAsString());
  EXPECT_TRUE(Flush(&frames).empty());
}

TEST(Outbox, KeepsTheOrderInWhichAWorkerAppliesAFrame) {
  OutFrames<wire::CommandFrame> frames;
  wire::CommandFrame& frame = frames.Get(kStream);
  // The lease comes last: with it the worker may begin a step, which should have all the rows.
  frame.mutable_lease()->set_lease_id(1);
  frame.add_closes()->set_request(1);
  frame.add_credits()->set_request(2);
  frame.add_releases(3);
  for (uint64_t request = 0; request < 200; ++request) {
    wire::Extend* const extend = frame.add_extends();
    extend->set_request(request);
    for (int i = 0; i < kIds; ++i) extend->add_ids(150000 + i);
  }
  frame.mutable_attached()->set_heartbeat_ms(1000);
  wire::CommandFrame whole = frame;
  whole.set_term(kTerm);
  const std::vector<wire::CommandFrame> sent = Flush(&frames);
  ASSERT_GT(sent.size(), 1u);
  EXPECT_EQ(Together(sent).SerializeAsString(), whole.SerializeAsString());
  EXPECT_TRUE(sent.front().has_attached());
  for (size_t i = 0; i + 1 < sent.size(); ++i) {
    EXPECT_EQ(sent[i].releases_size() + sent[i].closes_size(), 0) << "before an extend";
    EXPECT_FALSE(sent[i].has_lease());
  }
  EXPECT_TRUE(sent.back().has_lease());
}

TEST(Outbox, SplitsWhatManyRequestsHaveToSayToOneGateway) {
  OutFrames<wire::SchedulerFrame> frames;
  wire::SchedulerFrame& frame = frames.Get(kStream);
  frame.mutable_welcome()->set_protocol_version(2);
  frame.mutable_pair()->set_pair("pair");
  for (uint64_t request = 0; request < kRequests; ++request) {
    wire::TokenChunk* const chunk = frame.add_chunks();
    chunk->set_handle(request);
    for (int i = 0; i < 2048; ++i) {
      chunk->add_ids(150000 + i);
      chunk->add_entropies(1);
      chunk->add_logprobs(1);
      chunk->mutable_authors()->push_back('\1');
    }
  }
  frame.add_rejections()->set_handle(1);
  wire::SchedulerFrame whole = frame;
  whole.set_term(kTerm);
  EXPECT_GT(whole.ByteSizeLong(), kMaxFrameBytes);
  const std::vector<wire::SchedulerFrame> sent = Flush(&frames);
  ASSERT_GT(sent.size(), 1u);
  EXPECT_EQ(Together(sent).SerializeAsString(), whole.SerializeAsString());
  EXPECT_TRUE(sent.front().has_welcome());
  EXPECT_EQ(sent.back().rejections_size(), 1);
}

TEST(Outbox, SendsAnOrdinaryFrameAsItIs) {
  OutFrames<wire::CommandFrame> frames;
  AddOpen(&frames.Get(kStream), 1);
  frames.Get(kStream).add_releases(1);
  EXPECT_EQ(Flush(&frames).size(), 1u);
}

}  // namespace
}  // namespace tokenrouter
