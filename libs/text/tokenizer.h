// Tokenizer turns text into the ids of one model's vocabulary and back.
// Ownership: owns everything it was loaded from; no file stays open. Views it hands out live as
// long as it does.
// Threads: immutable after Load; every const method may be called from any thread at once.
// Units: text in UTF-8 bytes. Empty text has no ids (apart from a beginning token, if asked for)
// and no ids are empty text. An id that no token has stands for empty text.
// Errors: Load: NOT_FOUND, INVALID_ARGUMENT (unreadable contents, naming the file) and
// UNIMPLEMENTED (a kind of tokenizer not known, naming it). Encode: INVALID_ARGUMENT.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/text/text_crate.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

// Longer texts are refused: no context holds them, and encoding must end in about a second.
inline constexpr size_t kMaxEncodeBytes = size_t{16} << 20;

struct EncodeOptions {
  // Names of special tokens in the text become their ids: right for the output of a chat template,
  // wrong for text that a client could have written.
  bool parse_special = false;
  // Adds the tokens that the model expects around a plain text, usually a beginning token. Chat
  // templates contain theirs already.
  bool add_special = false;
};

class Tokenizer {
 public:
  // `path` is a .gguf file or a Hugging Face folder with tokenizer.json.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(const std::string& path);

  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              const EncodeOptions& options = {}) const;
  // Always valid UTF-8: bytes that are not become U+FFFD. `skip_special` leaves special tokens out.
  std::string Decode(std::span<const TokenId> ids, bool skip_special = true) const;
  // The bytes of one token, which may be a part of a character. A special token has its name.
  std::string_view TokenBytes(TokenId id) const;
  bool IsSpecial(TokenId id) const;

  // Ids below this are tokens (some may be unused); the rows of the weights above it are padding.
  TokenId usable_ids() const { return static_cast<TokenId>(view_.token_count); }
  // The ids that end an answer, the tokenizer's own first. May be empty.
  std::span<const TokenId> eos_ids() const { return eos_ids_; }
  std::optional<TokenId> bos_id() const;
  // Empty when the model has none.
  std::string_view bos_text() const { return text_crate::View(view_.bos_text); }
  std::string_view eos_text() const { return text_crate::View(view_.eos_text); }
  std::string_view chat_template() const { return text_crate::View(view_.chat_template); }
  // The template for requests with tools, where the model has a separate one.
  std::string_view tool_template() const { return text_crate::View(view_.tool_template); }
  // A decode drops one space at the very beginning of the text (SentencePiece).
  bool strips_first_space() const { return view_.strips_first_space != 0; }

  // 16 hexadecimal digits over the bytes and the kind of every usable id and the tokenizer's own
  // end token. Equal for two files of one tokenizer, GGUF or folder: then equal ids mean equal
  // text.
  const std::string& Fingerprint() const { return fingerprint_; }

 private:
  explicit Tokenizer(text_crate::TokenizerHandle handle);
  bool Has(TokenId id) const { return id >= 0 && id < usable_ids(); }

  const text_crate::TokenizerHandle handle_;
  const tr_tokenizer_view_t view_;
  const std::vector<TokenId> eos_ids_;
  const std::string fingerprint_;
};

}  // namespace tokenrouter
