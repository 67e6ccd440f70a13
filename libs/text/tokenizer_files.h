// Reads a model's tokenizer from disk: a GGUF file or a Hugging Face folder.
// Errors: NOT_FOUND for a missing file, naming it; INVALID_ARGUMENT for contents that do not parse;
// UNIMPLEMENTED for a kind of tokenizer this build does not know, naming it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "libs/text/text_crate.h"

namespace tokenrouter {

absl::StatusOr<text_crate::TokenizerHandle> LoadTokenizerFromGguf(const std::string& path);

// Reads tokenizer.json and, where present, tokenizer_config.json, generation_config.json and
// chat_template.jinja.
absl::StatusOr<text_crate::TokenizerHandle> LoadTokenizerFromFolder(const std::string& path);

}  // namespace tokenrouter
