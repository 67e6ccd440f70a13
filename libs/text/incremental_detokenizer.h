// IncrementalDetokenizer turns a stream of ids into text, delta by delta. The deltas and the Flush
// joined are exactly Tokenizer::Decode of all ids; no delta ever holds a part of a character.
// Ownership: refers to the tokenizer, which must outlive it.
// Threads: one stream, one caller at a time.
// Units: at most kMaxIncompleteUtf8Bytes bytes are held back. A token may give an empty delta. The
// cost of a token is its own length and does not depend on the tokens before it.
// Errors: none; an id that no token has gives no text.
#pragma once

#include <string>

#include "libs/text/tokenizer.h"

namespace tokenrouter {

class IncrementalDetokenizer {
 public:
  explicit IncrementalDetokenizer(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(tokenizer),
        skip_special_(skip_special),
        drops_space_(tokenizer.strips_first_space()) {}

  std::string Push(TokenId id);
  // The end of the stream: what is held back comes out as U+FFFD. No Push may follow.
  std::string Flush();
  size_t held_bytes() const { return held_.size(); }

 private:
  const Tokenizer& tokenizer_;
  const bool skip_special_;
  bool drops_space_;  // The next byte is the first of the text and may be a space to drop.
  std::string held_;  // The beginning of a character that is not complete yet.
};

}  // namespace tokenrouter
