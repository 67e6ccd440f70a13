// The tokenizer that all tiny models share: one token per byte, id = byte value, and three special
// tokens of ChatML. It is written in both source formats.
// Ownership: plain values. Threads: pure functions.
// Units: ids. Rows of a model at or above kTinyTokenizerSize are padding that must never be chosen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tokenrouter {

inline constexpr int64_t kTinyEndOfText = 256;
inline constexpr int64_t kTinyImStart = 257;
inline constexpr int64_t kTinyImEnd = 258;
inline constexpr int64_t kTinyTokenizerSize = 259;

// Printable form of each of the 259 tokens, as byte-level BPE files spell bytes.
std::vector<std::string> TinyTokens();

// ChatML, in Jinja.
std::string TinyChatTemplate();

// Contents of tokenizer.json and tokenizer_config.json.
std::string TinyTokenizerJson();
std::string TinyTokenizerConfigJson();

}  // namespace tokenrouter
