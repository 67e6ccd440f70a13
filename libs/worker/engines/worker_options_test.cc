#include "libs/worker/engines/worker_options.h"

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<WorkerOptions> Parse(Role role, std::vector<const char*> flags) {
  Settings settings("small_worker", "test");
  WorkerOptions options;
  AddWorkerSettings(role, &settings, &options);
  flags.insert(flags.begin(), "small_worker");
  TR_RETURN_IF_ERROR(settings.Parse(static_cast<int>(flags.size()), flags.data()).status());
  TR_RETURN_IF_ERROR(Validate(options));
  return options;
}

TEST(WorkerOptionsTest, DefaultsDifferByRoleOnlyInTheAdminPort) {
  TR_ASSERT_OK_AND_ASSIGN(const WorkerOptions small, Parse(Role::kSmall, {"--model=m"}));
  TR_ASSERT_OK_AND_ASSIGN(const WorkerOptions large, Parse(Role::kLarge, {"--model=m"}));
  EXPECT_EQ(small.admin, "127.0.0.1:9102");
  EXPECT_EQ(large.admin, "127.0.0.1:9103");
  EXPECT_EQ(small.scheduler, large.scheduler);
}

TEST(WorkerOptionsTest, ReadsEveryKindOfValue) {
  TR_ASSERT_OK_AND_ASSIGN(
      const WorkerOptions options,
      Parse(Role::kSmall,
            {"--engine=timed", "--timed_curve=h200", "--timed_agreement=0.5", "--kv_bytes=16777216",
             "--kv_format=int8", "--max_rows=7", "--device_key=gpu0", "--calibrate=false"}));
  EXPECT_EQ(options.timed_curve, "h200");
  EXPECT_EQ(options.timed_agreement, 0.5);
  EXPECT_EQ(options.kv_bytes, 16777216);
  EXPECT_EQ(options.kv_format, "int8");
  EXPECT_EQ(options.max_rows, 7);
  EXPECT_EQ(options.device_key, "gpu0");
  EXPECT_FALSE(options.calibrate);
}

TEST(WorkerOptionsTest, RefusesAModelBesideAnEngineThatRunsNone) {
  EXPECT_THAT(Parse(Role::kSmall, {"--engine=timed", "--model=a.gguf"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--engine=timed"), HasSubstr("a.gguf"))));
}

TEST(WorkerOptionsTest, RefusesWhatCannotServe) {
  EXPECT_THAT(Parse(Role::kSmall, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--model is empty")));
  EXPECT_THAT(Parse(Role::kSmall, {"--model=m", "--tokenizer=t"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--tokenizer is t")));
  EXPECT_THAT(Parse(Role::kSmall, {"--model=m", "--scheduler="}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Parse(Role::kSmall, {"--model=m", "--max_step_tokens=8"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_step_tokens")));
  EXPECT_THAT(Parse(Role::kSmall, {"--model=m", "--kv_format=int4"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("kv_format"), HasSubstr("int4"), HasSubstr("int8"))));
  EXPECT_THAT(Parse(Role::kSmall, {"--engine=magic"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("timed")));
}

}  // namespace
}  // namespace tokenrouter
