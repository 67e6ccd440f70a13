// gMock matchers of absl::Status and absl::StatusOr for tests.
//   EXPECT_THAT(pool.Allocate(1), IsOk());
//   EXPECT_THAT(Parse("x"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threshold")));
//   TR_ASSERT_OK_AND_ASSIGN(auto file, Open(path));
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {

inline const absl::Status& ToStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& ToStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  const absl::Status status = ToStatus(arg);
  *result_listener << status.ToString();
  return status.ok();
}

MATCHER_P(StatusIs, code, "has status code " + absl::StatusCodeToString(code)) {
  const absl::Status status = ToStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code;
}

MATCHER_P2(StatusIs, code, message,
           "has status code " + absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message)) {
  const absl::Status status = ToStatus(arg);
  *result_listener << status.ToString();
  return status.code() == code && ::testing::Value(std::string(status.message()),
                                                   ::testing::MatcherCast<std::string>(message));
}

}  // namespace tokenrouter

#define TR_ASSERT_OK_AND_ASSIGN(left, expression) \
  TR_ASSERT_OK_AND_ASSIGN_IMPL(TR_STATUS_CONCAT(tr_statusor_, __LINE__), left, expression)
#define TR_ASSERT_OK_AND_ASSIGN_IMPL(holder, left, expression) \
  auto holder = (expression);                                  \
  ASSERT_TRUE(holder.ok()) << holder.status();                 \
  left = *std::move(holder)
