// Tests the cache of packed weights as an engine uses it: it changes no bit and never makes a load
// fail.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/status_matchers.h"
#include "tests/engine/engine_driver.h"
#include "tests/engine/tiny_engine.h"

namespace tokenrouter {
namespace {

namespace fs = std::filesystem;

std::string Answer(const TorchEngineOptions& options) {
  const auto engine = MakeEngine(options);
  EngineDriver driver(engine.get());
  StepResult result;
  EXPECT_THAT(driver.Step({{.sequence = 1, .ids = {1, 2, 3, 4, 5}, .choices = 1}}, &result),
              IsOk());
  return Fingerprint(result.choices[0][0]);
}

// The format and whether our own kernel runs where the processor has it, else XNNPACK's.
class WeightCacheTest : public ::testing::TestWithParam<std::tuple<WeightFormat, bool>> {
 protected:
  WeightCacheTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    options_ = TinyEngineOptions("llama", std::get<0>(GetParam()));
    if (!std::get<1>(GetParam())) options_.kernels = UsableKernels().front();
    plain_ = Answer(options_);
    options_.model_path = folder_ + "/model.gguf";
    fs::copy_file(TinyModelPath("llama"), options_.model_path);
    options_.weight_cache = cache_;
  }
  ~WeightCacheTest() override { fs::remove_all(folder_); }

  // Of the files in the cache: inode numbers, which a new file changes.
  std::vector<uint64_t> Files() const {
    std::vector<uint64_t> files;
    for (const auto& file : fs::directory_iterator(cache_)) {
      struct stat info {};
      EXPECT_EQ(::stat(file.path().c_str(), &info), 0);
      files.push_back(info.st_ino);
    }
    return files;
  }
  std::string OnlyFile() const { return fs::directory_iterator(cache_)->path(); }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/weight_cache_", getpid());
  const std::string cache_ = folder_ + "/cache";
  TorchEngineOptions options_;
  std::string plain_;  // Without a cache.
};

TEST_P(WeightCacheTest, AnswersWithTheSameBitsFromAFullCache) {
  EXPECT_EQ(Answer(options_), plain_);
  const std::vector<uint64_t> files = Files();
  EXPECT_EQ(files.size(), 1u);
  std::vector<int64_t> done, total;
  options_.progress = [&](int64_t d, int64_t t) {
    done.push_back(d);
    total.push_back(t);
  };
  EXPECT_EQ(Answer(options_), plain_);
  EXPECT_EQ(Files(), files);
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done.back(), total.back());
}

TEST_P(WeightCacheTest, SharesTheFileBetweenEnginesThatRun) {
  const auto first = MakeEngine(options_);
  const std::vector<uint64_t> files = Files();
  const auto second = MakeEngine(options_);
  EXPECT_EQ(Answer(options_), plain_);
  EXPECT_EQ(Files(), files);
}

TEST_P(WeightCacheTest, RebuildsADamagedOrTruncatedFile) {
  EXPECT_EQ(Answer(options_), plain_);
  {
    std::fstream file(OnlyFile(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<int64_t>(fs::file_size(OnlyFile())) / 2);
    file.write("damage", 6);
  }
  EXPECT_EQ(Answer(options_), plain_);
  fs::resize_file(OnlyFile(), fs::file_size(OnlyFile()) / 2);
  EXPECT_EQ(Answer(options_), plain_);
  const std::vector<uint64_t> files = Files();
  EXPECT_EQ(files.size(), 1u);
  EXPECT_EQ(Answer(options_), plain_);
  EXPECT_EQ(Files(), files) << "the rebuilt file is good";
}

TEST_P(WeightCacheTest, KnowsACopiedModelAndNoticesAnEditedOne) {
  EXPECT_EQ(Answer(options_), plain_);
  const std::vector<uint64_t> files = Files();
  const std::string copy = folder_ + "/copy";
  fs::copy_file(options_.model_path, copy);
  fs::rename(copy, options_.model_path);
  EXPECT_EQ(Answer(options_), plain_);
  EXPECT_EQ(Files(), files);
  // Another scale of the middle layers' weights, in place.
  {
    std::fstream file(options_.model_path, std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<int64_t>(fs::file_size(options_.model_path)) / 8 * 4;
    std::vector<float> weights(2000);
    file.seekg(middle);
    file.read(reinterpret_cast<char*>(weights.data()), sizeof(float) * weights.size());
    for (float& weight : weights) weight *= -3.0f;
    file.seekp(middle);
    file.write(reinterpret_cast<const char*>(weights.data()), sizeof(float) * weights.size());
  }
  TorchEngineOptions uncached = options_;
  uncached.weight_cache.clear();
  const std::string edited = Answer(uncached);
  EXPECT_NE(edited, plain_);
  EXPECT_EQ(Answer(options_), edited);
}

TEST_P(WeightCacheTest, RunsWhereTheCacheCannotBeWritten) {
  std::ofstream(cache_) << "a file where the folder should be";
  EXPECT_EQ(Answer(options_), plain_);
}

TEST_P(WeightCacheTest, KeepsNothingThatIsLargerThanItsLimit) {
  options_.weight_cache_bytes = 1000;
  EXPECT_EQ(Answer(options_), plain_);
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_P(WeightCacheTest, TellsFormatsApart) {
  EXPECT_EQ(Answer(options_), plain_);
  options_.weight_format =
      options_.weight_format == WeightFormat::kInt8 ? WeightFormat::kInt4 : WeightFormat::kInt8;
  EXPECT_NE(Answer(options_), plain_);
  EXPECT_EQ(Files().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Formats, WeightCacheTest,
                         ::testing::Combine(::testing::Values(WeightFormat::kInt8,
                                                              WeightFormat::kInt4),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(WeightFormatName(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_chosen" : "_xnn");
                         });

}  // namespace
}  // namespace tokenrouter
