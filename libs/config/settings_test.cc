#include "libs/config/settings.h"

#include <cstdlib>
#include <fstream>

#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Options {
  std::string scheduler = "127.0.0.1:8002";
  int32_t threads = 2;
  double share = 0.5;
  std::vector<double> rates = {0.1, 0.2};
  bool idle = true;
  std::string engine = "torch";
};

class SettingsTest : public ::testing::Test {
 protected:
  absl::StatusOr<bool> Parse(std::vector<const char*> flags) {
    Settings settings("small_worker", "Runs the small model");
    settings.Add("scheduler", &options_.scheduler, "host:port");
    settings.Add("threads", &options_.threads, 1, 256, "compute threads");
    settings.Add("share", &options_.share, 0, 1, "share of memory");
    settings.Add("rates", &options_.rates, 0, 1, "list of rates");
    settings.Add("idle", &options_.idle, "catch up when idle");
    settings.AddChoice("engine", &options_.engine, {"torch", "timed"}, "which engine");
    flags.insert(flags.begin(), "small_worker");
    return settings.Parse(static_cast<int>(flags.size()), flags.data());
  }
  std::string File(const std::string& text) {
    const std::string path = ::testing::TempDir() + "settings_test.toml";
    std::ofstream(path) << text;
    return path;
  }
  Options options_;
};

TEST_F(SettingsTest, FlagsBeatEnvironmentBeatsFileBeatsDefault) {
  const std::string path = File(
      "scheduler = \"common:1\"\nlog_level = \"info\"\n[small_worker]\nthreads = 8\nshare = 0.25\n"
      "idle = false\n[gateway]\nhttp = \"x\"\n");
  const std::string flag = "--config=" + path;
  setenv("TOKENROUTER_SHARE", "0.75", 1);
  EXPECT_THAT(Parse({"--threads=4", flag.c_str()}), IsOk());
  unsetenv("TOKENROUTER_SHARE");
  EXPECT_EQ(options_.threads, 4);
  EXPECT_EQ(options_.share, 0.75);
  EXPECT_EQ(options_.scheduler, "common:1");
  EXPECT_FALSE(options_.idle);
  EXPECT_EQ(options_.engine, "torch");
}

TEST_F(SettingsTest, NamesFlagValueAndRange) {
  EXPECT_THAT(Parse({"--threads=0"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                               AllOf(HasSubstr("--threads"), HasSubstr("256"))));
  EXPECT_THAT(Parse({"--engine=fast"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 AllOf(HasSubstr("fast"), HasSubstr("timed"))));
  EXPECT_THAT(Parse({"--threads=many"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("many")));
}

TEST_F(SettingsTest, AListReplacesTheDefaultAndNamesTheValueThatIsWrong) {
  EXPECT_THAT(Parse({"--threads=4"}), IsOk());
  EXPECT_THAT(options_.rates, ElementsAre(0.1, 0.2));
  EXPECT_THAT(Parse({"--rates=0.5,1,.25"}), IsOk());
  EXPECT_THAT(options_.rates, ElementsAre(0.5, 1, 0.25));
  const std::string flag = "--config=" + File("[small_worker]\nrates = [0.75, 0]\n");
  EXPECT_THAT(Parse({flag.c_str()}), IsOk());
  EXPECT_THAT(options_.rates, ElementsAre(0.75, 0));
  for (const char* const wrong : {"--rates=0.5,2", "--rates=2x,1", "--rates="}) {
    EXPECT_THAT(Parse({wrong}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--rates")))
        << wrong;
  }
  EXPECT_THAT(Parse({"--rates=0.5,2"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2 not in range")));
}

TEST_F(SettingsTest, ASwitchNeedsNoValue) {
  options_.idle = false;
  EXPECT_THAT(Parse({"--idle", "--threads=3"}), IsOk());
  EXPECT_TRUE(options_.idle);
  EXPECT_EQ(options_.threads, 3);
  for (const std::vector<const char*>& off :
       {std::vector{"--idle=false", "--threads=4"}, {"--idle", "false", "--threads=5"}}) {
    options_.idle = true;
    EXPECT_THAT(Parse(off), IsOk());
    EXPECT_FALSE(options_.idle) << off[0];
  }
  EXPECT_EQ(options_.threads, 5);
  for (const std::vector<const char*>& wrong :
       {std::vector{"--idle=maybe"}, {"--idle="}, {"--idle", "--idle=true"}}) {
    EXPECT_THAT(Parse(wrong), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--idle")));
  }
  setenv("TOKENROUTER_IDLE", "true", 1);
  EXPECT_THAT(Parse({}), IsOk());
  unsetenv("TOKENROUTER_IDLE");
  EXPECT_TRUE(options_.idle);
}

TEST_F(SettingsTest, AnEmptyValueIsEmptyAndTakesNotTheNextFlag) {
  EXPECT_THAT(Parse({"--scheduler=", "--threads=3"}), IsOk());
  EXPECT_EQ(options_.scheduler, "");
  EXPECT_EQ(options_.threads, 3);
  EXPECT_THAT(Parse({"--threads=5", "--scheduler="}), IsOk());
  EXPECT_EQ(options_.threads, 5);
  EXPECT_THAT(Parse({"--threads=", "--idle=false"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--threads")));
  EXPECT_THAT(Parse({"--thread="}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean --threads")));
}

TEST_F(SettingsTest, NamesTheEnvironmentVariableOfABadValue) {
  setenv("TOKENROUTER_THREADS", "0", 1);
  EXPECT_THAT(Parse({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("variable TOKENROUTER_THREADS: "), HasSubstr("256"))));
  EXPECT_THAT(Parse({"--threads=999"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--threads: ")));
  unsetenv("TOKENROUTER_THREADS");
}

TEST_F(SettingsTest, SuggestsTheNearestFlag) {
  EXPECT_THAT(Parse({"--thread=3"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--thread=3"), HasSubstr("--threads"))));
}

TEST_F(SettingsTest, NamesFileAndKey) {
  const std::string unknown = "--config=" + File("[small_worker]\nthread = 3\n");
  EXPECT_THAT(Parse({unknown.c_str()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("settings_test.toml"), HasSubstr("key thread"),
                             HasSubstr("threads"))));
  const std::string range = "--config=" + File("[small_worker]\nthreads = 999\n");
  EXPECT_THAT(Parse({range.c_str()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("key threads"), HasSubstr("999"), HasSubstr("256"))));
  EXPECT_THAT(Parse({"--config=/nonexistent.toml"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/nonexistent.toml")));
  const std::string folder = "--config=" + ::testing::TempDir();
  EXPECT_THAT(Parse({folder.c_str()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot be read")));
}

TEST_F(SettingsTest, TheSectionBeatsTheCommonKeys) {
  const std::string flag =
      "--config=" + File("scheduler = \"common:1\"\n[small_worker]\nscheduler = \"own:2\"\n");
  EXPECT_THAT(Parse({flag.c_str()}), IsOk());
  EXPECT_EQ(options_.scheduler, "own:2");
}

TEST_F(SettingsTest, RefusesMisspeltCommonKeysAndSections) {
  const std::string key = "--config=" + File("threads = 3\n");
  EXPECT_THAT(Parse({key.c_str()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("key threads"), HasSubstr("log_level"))));
  const std::string section = "--config=" + File("[smal_worker]\nthreads = 3\n");
  EXPECT_THAT(Parse({section.c_str()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("[smal_worker]"), HasSubstr("small_worker"))));
}

TEST_F(SettingsTest, HelpIsNotAnError) {
  TR_ASSERT_OK_AND_ASSIGN(const bool go_on, Parse({"--help"}));
  EXPECT_FALSE(go_on);
}

}  // namespace
}  // namespace tokenrouter
