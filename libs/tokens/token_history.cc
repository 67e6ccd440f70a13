#include "libs/tokens/token_history.h"

#include <utility>

#include "libs/status/check.h"

namespace tokenrouter {

TokenHistory::TokenHistory(std::vector<TokenId> prompt)
    : ids_(std::move(prompt)),
      authors_(ids_.size(), Author::kPrompt),
      prompt_length_(static_cast<Position>(ids_.size())) {}

void TokenHistory::Commit(TokenId id, Author author) {
  ids_.resize(authors_.size());
  ids_.push_back(id);
  authors_.push_back(author);
  ++written_[static_cast<int>(author)];
}

void TokenHistory::ReplaceTail(std::span<const TokenId> tail) {
  ids_.resize(authors_.size());
  ids_.insert(ids_.end(), tail.begin(), tail.end());
}

std::span<const TokenId> TokenHistory::IdsFrom(Position from) const {
  TR_CHECK(from >= 0 && from <= size()) << "from " << from << " of " << size();
  return std::span<const TokenId>(ids_).subspan(from);
}

Author TokenHistory::author(Position position) const {
  TR_CHECK(position >= 0 && position < committed()) << position << " of " << committed();
  return authors_[position];
}

}  // namespace tokenrouter
