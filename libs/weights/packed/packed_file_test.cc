#include "libs/weights/packed/packed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/status_matchers.h"
#include "libs/weights/packed/packed_prefix.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::byte> Bytes(size_t count, int seed) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 31 + seed);
  return bytes;
}

void Serially(int64_t items, const std::function<void(int64_t)>& item) {
  for (int64_t i = 0; i < items; ++i) item(i);
}

class PackedFileTest : public ::testing::Test {
 protected:
  PackedFileTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  PackedKey Key(const std::string& engine = "engine", const std::string& files = "files") {
    return {.engine = engine, .files = files, .content = [this] {
              ++contents_read_;
              return content_;
            }};
  }
  absl::StatusOr<std::unique_ptr<PackedFile>> Open(const PackedKey& key) {
    return PackedFile::Open(path_, key, Serially, [this](int64_t done, int64_t total) {
      progress_ = {done, total};
    });
  }
  absl::Status WriteFile() {
    auto writer = PackedFileWriter::Create(path_, 1 << 20);
    if (!writer.ok()) return writer.status();
    for (const auto& [name, bytes] : sections_) {
      const absl::Status status = (*writer)->Append(name, bytes);
      if (!status.ok()) return status;
    }
    return (*writer)->Finish(Key(), Serially);
  }
  // Overwrites one byte.
  void Damage(int64_t at) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int old = file.get();
    file.seekp(at);
    file.put(static_cast<char>(old ^ 0x40));
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      names.push_back(file.path().filename());
    }
    return names;
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/packed_", getpid());
  const std::string path_ = folder_ + "/model.packed";
  const std::map<std::string, std::vector<std::byte>> sections_ = {
      {"a", Bytes(100, 1)}, {"b", Bytes(kDigestPiece + 5, 2)}, {"c", Bytes(64, 3)}};
  std::string content_ = "content";
  int contents_read_ = 0;
  std::pair<int64_t, int64_t> progress_;
};

TEST_F(PackedFileTest, GivesBackEverySectionAligned) {
  ASSERT_THAT(WriteFile(), IsOk());
  contents_read_ = 0;
  const auto file = Open(Key());
  ASSERT_THAT(file, IsOk());
  for (const auto& [name, bytes] : sections_) {
    const auto found = (*file)->Find(name);
    EXPECT_EQ(std::vector<std::byte>(found.begin(), found.end()), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(found.data()) % kPackedSectionAlignment, 0u);
  }
  EXPECT_THAT((*file)->Find("d"), IsEmpty());
  EXPECT_EQ(contents_read_, 0) << "the identity of the files was enough";
  EXPECT_GT(progress_.first, static_cast<int64_t>(kDigestPiece));
  EXPECT_EQ(progress_.first, progress_.second);
  EXPECT_THAT(Files(), ::testing::ElementsAre("model.packed"));
}

TEST_F(PackedFileTest, IsNotThereBeforeItIsWhole) {
  {
    const auto writer = PackedFileWriter::Create(path_, 0);
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT((*writer)->Append("a", sections_.at("a")), IsOk());
    EXPECT_THAT(Open(Key()), StatusIs(absl::StatusCode::kNotFound));
  }
  EXPECT_THAT(Files(), IsEmpty()) << "an unfinished file is removed";
}

TEST_F(PackedFileTest, ReplacesAFileThatIsMappedElsewhere) {
  ASSERT_THAT(WriteFile(), IsOk());
  const auto old = Open(Key());
  ASSERT_THAT(old, IsOk());
  ASSERT_THAT(WriteFile(), IsOk());
  EXPECT_THAT(Open(Key()), IsOk());
  EXPECT_EQ((*old)->Find("a")[5], sections_.at("a")[5]);
}

TEST_F(PackedFileTest, ReadsTheModelOnlyWhenItsFilesLookChanged) {
  ASSERT_THAT(WriteFile(), IsOk());
  contents_read_ = 0;
  EXPECT_THAT(Open(Key("engine", "copied files")), IsOk());
  EXPECT_EQ(contents_read_, 1);
  content_ = "other content";
  EXPECT_THAT(Open(Key("engine", "edited files")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the model has changed")));
}

TEST_F(PackedFileTest, RefusesAnotherEngine) {
  ASSERT_THAT(WriteFile(), IsOk());
  EXPECT_THAT(Open(Key("another engine")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("another engine")));
}

TEST_F(PackedFileTest, NoticesADamagedByteAnywhere) {
  ASSERT_THAT(WriteFile(), IsOk());
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path_));
  for (const int64_t at : {int64_t{0}, int64_t{15}, int64_t{16}, int64_t{24}, int64_t{40},
                           int64_t{70}, int64_t{kDigestPiece}, size - 200, size - 1}) {
    Damage(at);
    EXPECT_THAT(Open(Key()), StatusIs(absl::StatusCode::kDataLoss)) << at;
    Damage(at);
  }
  EXPECT_THAT(Open(Key()), IsOk());
}

TEST_F(PackedFileTest, NoticesEveryTruncation) {
  ASSERT_THAT(WriteFile(), IsOk());
  for (const uintmax_t size : {uintmax_t{1} << 21, uintmax_t{200}, uintmax_t{64}, uintmax_t{63},
                               uintmax_t{1}, uintmax_t{0}}) {
    std::filesystem::resize_file(path_, size);
    EXPECT_THAT(Open(Key()), StatusIs(absl::StatusCode::kDataLoss)) << size;
  }
}

TEST_F(PackedFileTest, NoticesAFileOfAnOlderLayout) {
  std::ofstream(path_) << std::string(1000, 'x');
  EXPECT_THAT(Open(Key()), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("another layout")));
}

// A header that is consistent in itself but points outside of the data.
TEST_F(PackedFileTest, RefusesSectionsOutsideOfTheData) {
  const std::string data = HexOf(DigestOfPieces({}, Serially, nullptr));
  for (const char* place : {R"("offset":0,"bytes":64)", R"("offset":64,"bytes":1)",
                            R"("offset":-64,"bytes":64)", R"("offset":64,"bytes":-1)",
                            R"("offset":9223372036854775744,"bytes":9223372036854775807)"}) {
    const std::string header =
        absl::StrCat(R"({"engine":"engine","files":"files","content":"c","data":")", data,
                     R"(","sections":{"a":{)", place, "}}}");
    PackedPrefix prefix{.header_offset = sizeof(PackedPrefix),
                        .header_bytes = header.size(),
                        .header_digest = Sha256(std::as_bytes(std::span(header)))};
    std::memcpy(prefix.magic, kPackedMagic, sizeof(prefix.magic));
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&prefix), sizeof(prefix)) << header;
    file.close();
    EXPECT_THAT(Open(Key()), StatusIs(absl::StatusCode::kDataLoss)) << place;
  }
}

TEST_F(PackedFileTest, SaysWhyItCannotBeWritten) {
  EXPECT_THAT(PackedFileWriter::Create("/nowhere/model.packed", 10),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("/nowhere/model.packed")));
}

// The limit on file sizes stands for a full disk.
TEST_F(PackedFileTest, SaysThatTheDiskIsFullAndLeavesNothing) {
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status written = WriteFile();
  const auto reserved = PackedFileWriter::Create(path_, 1 << 22);
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(written, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("write")));
  EXPECT_THAT(reserved, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("reserve")));
  EXPECT_THAT(Files(), IsEmpty());
}

}  // namespace
}  // namespace tokenrouter
