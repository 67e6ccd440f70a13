#include "libs/text/tokenizer.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libs/status/check.h"
#include "libs/status/status_macros.h"
#include "libs/text/tokenizer_files.h"

namespace tokenrouter {
namespace {

// FNV-1a, because the value must be the same in every process, build and machine.
class Fnv1a {
 public:
  void Add(std::string_view bytes) {
    for (const char byte : bytes) AddByte(static_cast<uint8_t>(byte));
  }
  void AddNumber(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) AddByte(static_cast<uint8_t>(number >> shift));
  }
  std::string Hex() const { return absl::StrFormat("%016x", hash_); }

 private:
  void AddByte(uint8_t byte) { hash_ = (hash_ ^ byte) * uint64_t{0x100000001b3}; }
  uint64_t hash_ = 0xcbf29ce484222325;
};

std::string FingerprintOf(const tr_tokenizer_view_t& view) {
  Fnv1a hash;
  hash.AddNumber(view.token_count);
  for (size_t id = 0; id < view.token_count; ++id) {
    const uint64_t begin = view.offsets[id];
    const uint64_t size = view.offsets[id + 1] - begin;
    hash.AddNumber(size << 8 | view.flags[id]);
    hash.Add({view.bytes + begin, size});
  }
  hash.AddNumber(view.eos_count == 0 ? ~uint64_t{0} : view.eos_ids[0]);
  return hash.Hex();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::string& path) {
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(path, error);
  TR_ASSIGN_OR_RETURN(auto handle,
                      is_folder ? LoadTokenizerFromFolder(path) : LoadTokenizerFromGguf(path));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(handle)));
  if (tokenizer->usable_ids() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the vocabulary is empty"));
  }
  return tokenizer;
}

Tokenizer::Tokenizer(text_crate::TokenizerHandle handle)
    : handle_(std::move(handle)),
      view_(tr_tokenizer_view(handle_.get())),
      eos_ids_(view_.eos_ids, view_.eos_ids + view_.eos_count),
      fingerprint_(FingerprintOf(view_)) {}

absl::StatusOr<std::vector<TokenId>> Tokenizer::Encode(std::string_view text,
                                                       const EncodeOptions& options) const {
  if (text.size() > kMaxEncodeBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of ", text.size(), " bytes is over the limit of ", kMaxEncodeBytes));
  }
  tr_ids ids;
  tr_buffer error;
  const int32_t code = tr_encode(handle_.get(), text_crate::Borrow(text), options.parse_special,
                                 options.add_special, &ids, &error);
  TR_RETURN_IF_ERROR(text_crate::StatusOf(code, error, "tokenizer"));
  std::vector<TokenId> result(ids.data, ids.data + ids.size);
  tr_ids_free(ids);
  return result;
}

std::string Tokenizer::Decode(std::span<const TokenId> ids, bool skip_special) const {
  // A negative id becomes a large one, which no token has.
  const auto* data = reinterpret_cast<const uint32_t*>(ids.data());
  tr_buffer text;
  tr_buffer error;
  const int32_t code = tr_decode(handle_.get(), data, ids.size(), skip_special, &text, &error);
  TR_CHECK(code == 0) << text_crate::Take(error);
  return text_crate::Take(text);
}

std::string_view Tokenizer::TokenBytes(TokenId id) const {
  if (!Has(id)) return {};
  const uint64_t begin = view_.offsets[id];
  return {view_.bytes + begin, static_cast<size_t>(view_.offsets[id + 1] - begin)};
}

bool Tokenizer::IsSpecial(TokenId id) const {
  return Has(id) && (view_.flags[id] & TR_TOKEN_SPECIAL) != 0;
}

std::optional<TokenId> Tokenizer::bos_id() const {
  if (view_.bos_id < 0) return std::nullopt;
  return static_cast<TokenId>(view_.bos_id);
}

}  // namespace tokenrouter
