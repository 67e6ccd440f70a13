// TextModel is the text side of a model pair as the gateway needs it: prompts to ids, ids to text.
// Ownership: a TextModel outlives the Detokenizers it made. Threads: TextModel is thread-safe
// (const); a Detokenizer belongs to one request and one thread at a time. Errors: INVALID_ARGUMENT
// when a template refuses the messages or the text cannot be tokenized.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct ChatTurn {
  std::string role;
  std::string content;
};

// Turns ids into text piece by piece. The concatenation of everything it returns is valid UTF-8.
class Detokenizer {
 public:
  virtual ~Detokenizer() = default;
  // Text that became certain with this id; may be empty.
  virtual std::string Push(TokenId id) = 0;
  // Returns at the end the text that was held back.
  virtual std::string Flush() = 0;
};

class TextModel {
 public:
  virtual ~TextModel() = default;

  // `kwargs_json` is a JSON object handed to the template; empty: none.
  virtual absl::StatusOr<std::string> RenderChat(std::span<const ChatTurn> messages,
                                                 std::string_view kwargs_json) const = 0;
  // Names of special tokens in the text become their ids. `add_special`: add what the tokenizer
  // adds to plain text (a beginning-of-sequence id); a rendered chat has it already.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                                      bool add_special) const = 0;
  // Special ids give no text.
  virtual std::string Decode(std::span<const TokenId> ids) const = 0;
  virtual std::unique_ptr<Detokenizer> NewDetokenizer() const = 0;
  // The id's own bytes, for people; not necessarily UTF-8.
  virtual std::string TokenBytes(TokenId id) const = 0;
  virtual int32_t vocabulary_size() const = 0;
  virtual std::string fingerprint() const = 0;
};

}  // namespace tokenrouter
