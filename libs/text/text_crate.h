// Conversions and owning handles for the files that call the Rust crate.
// Ownership: Borrow() and the views made of it last as long as their string; handles own.
// Threads: free functions and stateless handles.
// Errors: StatusOf turns a code and its message into an absl::Status and frees the message.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "libs/text/rust/tokenrouter_text.h"

namespace tokenrouter::text_crate {

inline tr_text Borrow(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view View(tr_text text) { return {text.data, text.size}; }

// Copies the buffer and gives it back to the crate.
std::string Take(tr_buffer buffer);

// `what` goes before the crate's message. `error` is read and freed only when `code` is not 0.
absl::Status StatusOf(int32_t code, tr_buffer error, std::string_view what);

struct FreeTokenizer {
  void operator()(tr_tokenizer* tokenizer) const { tr_tokenizer_free(tokenizer); }
};
struct FreeTemplate {
  void operator()(tr_template* chat_template) const { tr_template_free(chat_template); }
};
using TokenizerHandle = std::unique_ptr<tr_tokenizer, FreeTokenizer>;
using TemplateHandle = std::unique_ptr<tr_template, FreeTemplate>;

}  // namespace tokenrouter::text_crate
