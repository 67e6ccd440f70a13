// TokenHistory is the canonical record of one request: prompt, committed tokens with author, and a
// tentative tail. Below the committed length it is append-only; above it, it is replaced as a
// whole. Ownership: owns its vectors. Threads: not thread-safe; lives with the owner of the
// request. Units: positions are canonical, prompt included. Errors: breaking the committed part is
// a CHECK.
#pragma once

#include <span>
#include <vector>

#include "libs/tokens/token_types.h"

namespace tokenrouter {

class TokenHistory {
 public:
  TokenHistory() = default;
  explicit TokenHistory(std::vector<TokenId> prompt);

  // Appends a committed token and drops the tail.
  void Commit(TokenId id, Author author);
  void ReplaceTail(std::span<const TokenId> tail);

  Position prompt_length() const { return prompt_length_; }
  // Committed length, prompt included.
  Position committed() const { return static_cast<Position>(authors_.size()); }
  // Committed length plus tail.
  Position size() const { return static_cast<Position>(ids_.size()); }
  int32_t generated() const { return committed() - prompt_length_; }

  std::span<const TokenId> ids() const { return ids_; }
  // Committed and tentative ids from `from` on. REQUIRES: 0 <= from <= size().
  std::span<const TokenId> IdsFrom(Position from) const;
  std::span<const TokenId> tail() const { return IdsFrom(committed()); }
  // REQUIRES: position < committed().
  Author author(Position position) const;
  // Committed tokens written by `author` since the prompt.
  int32_t written_by(Author author) const { return written_[static_cast<int>(author)]; }

 private:
  std::vector<TokenId> ids_;
  std::vector<Author> authors_;
  Position prompt_length_ = 0;
  int32_t written_[3] = {0, 0, 0};
};

}  // namespace tokenrouter
