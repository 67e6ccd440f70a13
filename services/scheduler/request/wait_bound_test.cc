#include "services/scheduler/request/wait_bound.h"

#include <gtest/gtest.h>

namespace tokenrouter {
namespace {

constexpr absl::Duration kCap = absl::Seconds(1);
const absl::Time kSubmitted = absl::UnixEpoch() + absl::Seconds(100);
const absl::Time kSince = kSubmitted + absl::Milliseconds(70);

RequestMachine Machine(wire::GenerationSpec spec, int generated) {
  TokenHistory history({1, 2, 3});
  for (int i = 0; i < generated; ++i) history.Commit(40, Author::kSmall);
  return RequestMachine({.key = 1, .submitted_at = kSubmitted}, std::move(spec), std::move(history),
                        "", {}, 64);
}

TEST(WaitBound, IsTheCapUnlessTheRequestSaysLess) {
  wire::GenerationSpec spec;
  EXPECT_EQ(ServeBy(BoundOf(Machine(spec, 0), kSince, kCap), absl::Milliseconds(5)), kSince + kCap);
  spec.set_max_defer_ms(30);
  EXPECT_EQ(ServeBy(BoundOf(Machine(spec, 0), kSince, kCap), absl::Milliseconds(5)),
            kSince + absl::Milliseconds(30));
  spec.set_max_defer_ms(5000);
  EXPECT_EQ(BoundOf(Machine(spec, 0), kSince, kCap).latest, kSince + kCap);
}

TEST(WaitBound, MeetsTheTargetsOfTheFirstTokenAndOfEachNextOne) {
  wire::GenerationSpec spec;
  spec.set_ttft_slo_ms(200);
  spec.set_token_slo_ms(50);
  EXPECT_EQ(ServeBy(BoundOf(Machine(spec, 0), kSince, kCap), absl::Milliseconds(5)),
            kSubmitted + absl::Milliseconds(195));
  RequestMachine writing = Machine(spec, 1);
  writing.mutable_service().committed_at = kSince + absl::Milliseconds(10);
  EXPECT_EQ(ServeBy(BoundOf(writing, kSince, kCap), absl::Milliseconds(5)),
            kSince + absl::Milliseconds(55));
}

}  // namespace
}  // namespace tokenrouter
