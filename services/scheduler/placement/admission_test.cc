#include "services/scheduler/placement/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "services/scheduler/testing/scripted_scheduler.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    pair_.name = "pair";
    pair_.context_limit = 128;
    pair_.usable_ids = 1000;
    submit_ = ScriptedScheduler::MakeSubmit(1);
  }
  void ExpectRefused(const std::string& words) {
    const auto refusal = JudgeSubmit(submit_, pair_);
    ASSERT_TRUE(refusal.has_value()) << words;
    EXPECT_EQ(refusal->code, absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(refusal->message, HasSubstr(words));
  }
  Pair pair_;
  wire::Submit submit_;
};

TEST_F(AdmissionTest, AdmitsAPlainRequest) {
  EXPECT_FALSE(JudgeSubmit(submit_, pair_).has_value());
}

TEST_F(AdmissionTest, RefusesIdsThatTheModelsDoNotHave) {
  submit_.set_ids(1, 1000);
  ExpectRefused("token id 1000 is outside 0..999");
  submit_.set_ids(1, -1);
  ExpectRefused("token id -1");
}

TEST_F(AdmissionTest, RefusesAPromptLengthThatDoesNotFitTheIds) {
  submit_.mutable_spec()->set_prompt_length(4);
  ExpectRefused("prompt_length 4 is outside 1..3");
  submit_.mutable_spec()->set_prompt_length(0);
  ExpectRefused("prompt_length 0");
}

TEST_F(AdmissionTest, RefusesResumedIdsWithoutAuthors) {
  submit_.add_ids(4);
  ExpectRefused("0 authors for 1 ids");
  submit_.set_authors("\3");
  ExpectRefused("author 3");
  submit_.set_authors("\2");
  EXPECT_FALSE(JudgeSubmit(submit_, pair_).has_value());
}

TEST_F(AdmissionTest, RefusesWhatDoesNotFitTheContextAndNamesAllNumbers) {
  submit_.mutable_spec()->mutable_stop()->set_max_new_tokens(126);
  const auto refusal = JudgeSubmit(submit_, pair_);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, RejectReason::kContextLimit);
  EXPECT_THAT(refusal->message, HasSubstr("prompt of 3 tokens + max_new_tokens 126 = 129 exceeds "
                                          "the context limit 128 of pair pair"));
  pair_.context_limit = 0;  // Not known yet.
  EXPECT_FALSE(JudgeSubmit(submit_, pair_).has_value());
}

TEST_F(AdmissionTest, DoesNotOverflowOnHugeLimits) {
  submit_.mutable_spec()->mutable_stop()->set_max_new_tokens(std::numeric_limits<int32_t>::max());
  EXPECT_TRUE(JudgeSubmit(submit_, pair_).has_value());
}

TEST_F(AdmissionTest, RefusesParametersOutOfRange) {
  submit_.mutable_spec()->mutable_sampling()->set_temperature(-1);
  ExpectRefused("temperature");
  submit_ = ScriptedScheduler::MakeSubmit(1);
  submit_.mutable_spec()->mutable_stop()->set_max_new_tokens(0);
  ExpectRefused("max_new_tokens");
  submit_ = ScriptedScheduler::MakeSubmit(1);
  submit_.set_state(std::string(65, 'x'));
  ExpectRefused("65 bytes");
  submit_ = ScriptedScheduler::MakeSubmit(1);
  submit_.mutable_spec()->clear_request_id();
  ExpectRefused("request_id is empty");
}

TEST(JudgeLoad, RefusesANewRequestBeyondTheIdsAndNamesAllNumbers) {
  CoreOptions options;
  options.max_ids = 1000;
  EXPECT_FALSE(JudgeLoad({.reserved_ids = 900, .wanted_ids = 100}, false, options).has_value());
  const auto refusal = JudgeLoad({.reserved_ids = 900, .wanted_ids = 101}, false, options);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, RejectReason::kMaxIds);
  EXPECT_EQ(refusal->code, absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refusal->message, HasSubstr("101 ids"));
  EXPECT_THAT(refusal->message, HasSubstr("900; the limit is 1000"));
  EXPECT_FALSE(JudgeLoad({.reserved_ids = 900, .wanted_ids = 101}, true, options).has_value());
}

TEST(JudgeLoad, RefusesBeyondItsLimitsAndLetsResumedOnesThrough) {
  CoreOptions options;
  options.max_requests = 10;
  options.max_queued = 2;
  const auto reason = [&](AdmissionLoad load, bool resumed) -> std::optional<RejectReason> {
    const auto refusal = JudgeLoad(load, resumed, options);
    if (!refusal) return std::nullopt;
    return refusal->reason;
  };
  EXPECT_EQ(reason({.live = 9, .newcomers = 1, .must_wait = true}, false), std::nullopt);
  EXPECT_EQ(reason({.live = 9, .newcomers = 2, .must_wait = true}, false),
            RejectReason::kQueueFull);
  EXPECT_EQ(reason({.live = 9, .newcomers = 2, .must_wait = false}, false), std::nullopt);
  EXPECT_EQ(reason({.live = 9, .newcomers = 2, .must_wait = true}, true), std::nullopt);
  EXPECT_EQ(reason({.live = 10}, false), RejectReason::kMaxRequests);
  EXPECT_EQ(reason({.live = 10}, true), std::nullopt) << "there was room for it before";
}

TEST(JudgeLoad, KeepsHalfForResumedOnesWhileTheySettle) {
  CoreOptions options;
  options.max_requests = 10;
  const AdmissionLoad half{.live = 5, .settles_in = absl::Seconds(2)};
  const auto refusal = JudgeLoad(half, /*resumed=*/false, options);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, RejectReason::kMaxRequests);
  EXPECT_EQ(refusal->retry_at_least, absl::Seconds(2));
  EXPECT_FALSE(JudgeLoad({.live = 4, .settles_in = absl::Seconds(2)}, false, options).has_value());
  EXPECT_FALSE(JudgeLoad(half, /*resumed=*/true, options).has_value());
  EXPECT_FALSE(JudgeLoad({.live = 5}, false, options).has_value());
}

}  // namespace
}  // namespace tokenrouter
