#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/weights/packed/packed_file.h"
#include "libs/weights/packed/packed_prefix.h"

namespace tokenrouter {
namespace {

// Distinguishes the temporary files of one process.
std::atomic<int> temporary_files{0};

size_t Aligned(size_t at) {
  return (at + kPackedSectionAlignment - 1) / kPackedSectionAlignment * kPackedSectionAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PackedFileWriter>> PackedFileWriter::Create(const std::string& path,
                                                                           int64_t expected_bytes) {
  const std::string temporary =
      absl::StrCat(path, ".", getpid(), ".", temporary_files.fetch_add(1), kPackedTemporary);
  const int descriptor =
      ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  std::unique_ptr<PackedFileWriter> writer(new PackedFileWriter(path, temporary, descriptor));
  if (descriptor < 0) return writer->Failed("create", errno);
  if (expected_bytes > 0 && ::fallocate(descriptor, 0, 0, expected_bytes) != 0 &&
      errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
    return writer->Failed("reserve space for", errno);
  }
  return writer;
}

PackedFileWriter::PackedFileWriter(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

PackedFileWriter::~PackedFileWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!finished_) ::unlink(temporary_.c_str());
}

absl::Status PackedFileWriter::Failed(const char* what, int error) const {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", temporary_, ": ", std::strerror(error)));
}

absl::Status PackedFileWriter::Write(std::span<const std::byte> bytes, size_t at) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write", errno);
    if (written == 0) return Failed("write", ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
    at += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status PackedFileWriter::Append(const std::string& name, std::span<const std::byte> bytes) {
  const size_t offset = Aligned(end_);
  const bool is_new = sections_.emplace(name, Section{offset, bytes.size()}).second;
  TR_CHECK(is_new && !bytes.empty()) << name;
  end_ = offset + bytes.size();
  return Write(bytes, offset);
}

absl::Status PackedFileWriter::Finish(const PackedKey& key, const ParallelFor& parallel) {
  boost::json::object sections;
  for (const auto& [name, section] : sections_) {
    sections[name] = boost::json::object{{"offset", section.offset}, {"bytes", section.bytes}};
  }
  // Returns the space reserved beyond the end; the reader maps only what was written.
  if (::ftruncate(descriptor_, static_cast<off_t>(end_)) != 0) return Failed("cut", errno);
  std::string header;
  {
    TR_ASSIGN_OR_RETURN(const auto written, MappedFile::Open(temporary_));
    const auto data = written->bytes().subspan(kPackedPrefixBytes);
    const auto drop_pages = [&written](int64_t, int64_t) { written->DropPages(); };
    header = boost::json::serialize(
        boost::json::object{{"engine", key.engine},
                            {"files", key.files},
                            {"content", key.content()},
                            {"data", HexOf(DigestOfPieces(data, parallel, drop_pages))},
                            {"sections", std::move(sections)}});
  }
  const auto header_bytes = std::as_bytes(std::span(header));
  PackedPrefix prefix{.header_offset = end_,
                      .header_bytes = header_bytes.size(),
                      .header_digest = Sha256(header_bytes)};
  std::memcpy(prefix.magic, kPackedMagic, sizeof(prefix.magic));
  TR_RETURN_IF_ERROR(Write(header_bytes, end_));
  TR_RETURN_IF_ERROR(Write(std::as_bytes(std::span(&prefix, 1)), 0));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return Failed("rename", errno);
  finished_ = true;
  return absl::OkStatus();
}

}  // namespace tokenrouter
