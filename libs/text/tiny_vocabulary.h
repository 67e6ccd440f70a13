// A tokenizer small enough to write in a test: byte-level, the 256 bytes, a few merges and special
// tokens, in the form of a Hugging Face folder or of a GGUF file without tensors.
// Ownership: the files are the caller's to remove.
// Threads: free functions.
// Errors: none reported; a file that cannot be written fails a TR_CHECK.
#pragma once

#include <string>
#include <vector>

#include "libs/tokens/token_types.h"

namespace tokenrouter {

struct TinyVocabulary {
  std::vector<std::string> tokens;  // Spelled as in the files; id = index.
  std::vector<std::string> merges;
  std::vector<float> scores;  // Of model llama; empty otherwise.
  std::vector<int> types;     // As in GGUF: 1 ordinary, 3 control, 4 user-defined, 5 unused.
  TokenId im_start = 0;
  TokenId im_end = 0;  // The end token.
  TokenId end_of_text = 0;
  TokenId tool_call = 0;  // User-defined: parsed like text, not skipped.
  std::string chat_template;
};

TinyVocabulary MakeTinyVocabulary();

// Writes tokenizer.json, tokenizer_config.json and generation_config.json into `folder`, which it
// makes.
void WriteTinyFolder(const TinyVocabulary& vocabulary, const std::string& folder);

// SentencePiece BPE with scores, <unk> <s> </s> and the bytes, and the tokenizer.json that says the
// same: for model "llama".
TinyVocabulary MakeTinySentencePieces();
void WriteTinySentencePieceFolder(const TinyVocabulary& vocabulary, const std::string& folder);

// `pre` is tokenizer.ggml.pre and `model` tokenizer.ggml.model.
void WriteTinyGguf(const TinyVocabulary& vocabulary, const std::string& path,
                   const std::string& pre = "qwen2", const std::string& model = "gpt2");

}  // namespace tokenrouter
