#include "libs/status/status_macros.h"

#include <memory>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<int> Positive(int value) {
  if (value <= 0) return absl::InvalidArgumentError("value must be positive");
  return value;
}

absl::StatusOr<int> Sum(int a, int b) {
  TR_ASSIGN_OR_RETURN(const int first, Positive(a));
  TR_ASSIGN_OR_RETURN(const int second, Positive(b));
  TR_RETURN_IF_ERROR(absl::OkStatus());
  return first + second;
}

TEST(StatusMacrosTest, AssignsValuesOnSuccess) {
  TR_ASSERT_OK_AND_ASSIGN(const int sum, Sum(2, 3));
  EXPECT_EQ(sum, 5);
  EXPECT_THAT(Sum(1, 1), IsOk());
}

TEST(StatusMacrosTest, ReturnsTheFirstError) {
  EXPECT_THAT(Sum(1, -1), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("positive")));
}

TEST(StatusMacrosTest, MovesOutOfTheHolder) {
  const auto make = []() -> absl::StatusOr<std::unique_ptr<int>> {
    return std::make_unique<int>(7);
  };
  TR_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<int> value, make());
  EXPECT_EQ(*value, 7);
}

}  // namespace
}  // namespace tokenrouter
