#include "libs/weights/packed/packed_file.h"

#include <sys/mman.h>

#include <boost/json.hpp>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/json_fields.h"
#include "libs/weights/packed/packed_prefix.h"

namespace tokenrouter {
namespace {

using Bytes = std::span<const std::byte>;

struct Header {
  std::string engine, files, content, data;
  std::map<std::string, Bytes> sections;
};

// A section of the header, checked against the size of the data.
absl::StatusOr<Bytes> ReadSection(const boost::json::value& value, Bytes until_header,
                                  const std::string& where) {
  if (!value.is_object()) return absl::InvalidArgumentError("a section is no object");
  const boost::json::object& section = value.get_object();
  TR_ASSIGN_OR_RETURN(const int64_t offset, JsonInt(section, "offset", where));
  TR_ASSIGN_OR_RETURN(const int64_t bytes, JsonInt(section, "bytes", where));
  const auto end = static_cast<int64_t>(until_header.size());
  if (offset < static_cast<int64_t>(kPackedPrefixBytes) || bytes <= 0 || offset > end ||
      bytes > end - offset || offset % static_cast<int64_t>(kPackedSectionAlignment) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a section lies at ", offset, ", ", bytes));
  }
  return until_header.subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
}

absl::StatusOr<Header> ReadHeader(Bytes bytes, Bytes until_header, const std::string& where) {
  TR_ASSIGN_OR_RETURN(const boost::json::object json, ParseJsonObject(bytes, where));
  Header header;
  TR_ASSIGN_OR_RETURN(header.engine, JsonString(json, "engine", where));
  TR_ASSIGN_OR_RETURN(header.files, JsonString(json, "files", where));
  TR_ASSIGN_OR_RETURN(header.content, JsonString(json, "content", where));
  TR_ASSIGN_OR_RETURN(header.data, JsonString(json, "data", where));
  const boost::json::value* const sections = FindJson(json, "sections");
  if (sections == nullptr || !sections->is_object()) {
    return absl::InvalidArgumentError("the header has no sections");
  }
  for (const auto& [name, value] : sections->get_object()) {
    TR_ASSIGN_OR_RETURN(const Bytes section, ReadSection(value, until_header, where));
    header.sections.emplace(name, section);
  }
  return header;
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

// The offset of the header.
absl::StatusOr<size_t> CheckPrefix(Bytes all, const std::string& path) {
  if (all.size() < kPackedPrefixBytes) return Damaged(path, "shorter than its prefix");
  PackedPrefix prefix;
  std::memcpy(&prefix, all.data(), sizeof(prefix));
  if (std::memcmp(prefix.magic, kPackedMagic, sizeof(prefix.magic)) != 0) {
    return Damaged(path, "another layout, or no packed file");
  }
  if (prefix.header_offset < kPackedPrefixBytes || prefix.header_bytes > kMaxPackedHeaderBytes ||
      prefix.header_offset > all.size() ||
      prefix.header_bytes != all.size() - prefix.header_offset) {
    return Damaged(path, "truncated, or the prefix is damaged");
  }
  if (Sha256(all.subspan(prefix.header_offset)) != prefix.header_digest) {
    return Damaged(path, "the header is damaged");
  }
  return prefix.header_offset;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PackedFile>> PackedFile::Open(const std::string& path,
                                                             const PackedKey& key,
                                                             const ParallelFor& parallel,
                                                             const DigestProgress& progress) {
  TR_ASSIGN_OR_RETURN(auto mapped, MappedFile::Open(path));
  std::unique_ptr<PackedFile> file(new PackedFile(std::move(mapped)));
  TR_RETURN_IF_ERROR(file->Check(key, parallel, progress));
  return file;
}

absl::Status PackedFile::Check(const PackedKey& key, const ParallelFor& parallel,
                               const DigestProgress& progress) {
  const Bytes all = file_->bytes();
  TR_ASSIGN_OR_RETURN(const size_t header_offset, CheckPrefix(all, path()));
  const Bytes until_header = all.first(header_offset);
  auto header = ReadHeader(all.subspan(header_offset), until_header, path());
  if (!header.ok()) return Damaged(path(), header.status().message());
  if (header->engine != key.engine) {
    return Damaged(path(), "packed by another engine or of another model");
  }
  // Large pages, where the file system has them; a refusal costs speed only.
  madvise(const_cast<std::byte*>(all.data()), all.size(), MADV_HUGEPAGE);
  const Digest data = DigestOfPieces(until_header.subspan(kPackedPrefixBytes), parallel, progress);
  if (HexOf(data) != header->data) return Damaged(path(), "the data is damaged");
  if (header->files != key.files && header->content != key.content()) {
    return Damaged(path(), "the model has changed since");
  }
  sections_ = std::move(header->sections);
  return absl::OkStatus();
}

std::span<const std::byte> PackedFile::Find(const std::string& name) const {
  const auto found = sections_.find(name);
  return found == sections_.end() ? std::span<const std::byte>() : found->second;
}

}  // namespace tokenrouter
