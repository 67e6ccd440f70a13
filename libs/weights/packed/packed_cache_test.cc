#include "libs/weights/packed/packed_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libs/status/status_matchers.h"

namespace tokenrouter {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSection = 100'000;

void Serially(int64_t items, const std::function<void(int64_t)>& item) {
  for (int64_t i = 0; i < items; ++i) item(i);
}

PackedKey Key(const std::string& engine) {
  return {.engine = engine, .files = "files", .content = [] { return "content"; }};
}

class PackedCacheTest : public ::testing::Test {
 protected:
  PackedCacheTest() { fs::remove_all(fs::path(folder_).parent_path()); }
  bool Has(const std::string& engine) {
    return cache_.Load("model.gguf", Key(engine), Serially, nullptr) != nullptr;
  }
  // Whether it could be stored.
  bool Store(const std::string& engine) {
    const auto writer = cache_.Begin("folder/model.gguf", Key(engine), kSection);
    if (writer == nullptr) return false;
    EXPECT_THAT(writer->Append("a", std::vector<std::byte>(kSection)), IsOk());
    cache_.Finish(writer.get(), Key(engine), Serially);
    return true;
  }
  std::vector<std::string> Paths() const {
    std::vector<std::string> paths;
    for (const auto& file : fs::directory_iterator(folder_)) paths.push_back(file.path());
    return paths;
  }
  static void SetAge(const std::string& path, absl::Duration age) {
    const timespec time = absl::ToTimespec(absl::Now() - age);
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/packed_cache_", getpid(), "/x");
  PackedCache cache_{folder_, 3 * kSection};
};

TEST_F(PackedCacheTest, LoadsWhatItStored) {
  EXPECT_FALSE(Has("one"));
  EXPECT_TRUE(Store("one"));
  EXPECT_TRUE(Has("one"));
  EXPECT_FALSE(Has("two"));
  EXPECT_EQ(fs::path(Paths().at(0)).filename().string().rfind("model.gguf-", 0), 0u);
}

TEST_F(PackedCacheTest, ReplacesADamagedFile) {
  ASSERT_TRUE(Store("one"));
  fs::resize_file(Paths().at(0), kSection / 2);
  EXPECT_FALSE(Has("one"));
  EXPECT_TRUE(Store("one"));
  EXPECT_TRUE(Has("one"));
}

TEST_F(PackedCacheTest, RemovesTheFileUsedLongestAgoWhenFull) {
  ASSERT_TRUE(Store("one"));
  ASSERT_TRUE(Store("two"));
  for (const std::string& path : Paths()) SetAge(path, absl::Hours(1));
  ASSERT_TRUE(Has("one"));  // Used now.
  ASSERT_TRUE(Store("three"));
  EXPECT_TRUE(Has("one"));
  EXPECT_FALSE(Has("two"));
  EXPECT_TRUE(Has("three"));
}

TEST_F(PackedCacheTest, StoresNothingThatIsLargerThanTheLimit) {
  ASSERT_TRUE(Store("one"));
  EXPECT_EQ(cache_.Begin("model.gguf", Key("two"), 3 * kSection + 1), nullptr);
  EXPECT_TRUE(Has("one"));
}

TEST_F(PackedCacheTest, RemovesTemporaryFilesOnlyOfTheDead) {
  fs::create_directories(folder_);
  const std::string dead = folder_ + "/a.packed.1.0.tmp", alive = folder_ + "/b.packed.2.0.tmp";
  const std::string foreign = folder_ + "/notes.txt";
  for (const std::string& path : {dead, alive, foreign}) std::ofstream(path) << "x";
  SetAge(dead, 2 * kPackedTemporaryAge);
  SetAge(foreign, 2 * kPackedTemporaryAge);
  ASSERT_TRUE(Store("one"));
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(alive));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(PackedCacheTest, GoesOnWithoutAFolder) {
  std::ofstream(fs::path(folder_).parent_path()) << "a file where the folder should be";
  EXPECT_FALSE(Store("one"));
  EXPECT_FALSE(Has("one"));
}

}  // namespace
}  // namespace tokenrouter
