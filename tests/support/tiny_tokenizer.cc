#include "tests/support/tiny_tokenizer.h"

#include <boost/json.hpp>

namespace tokenrouter {
namespace {

namespace json = boost::json;

std::string Utf8(int code_point) {
  std::string text;
  if (code_point < 0x80) {
    text.push_back(static_cast<char>(code_point));
  } else {
    text.push_back(static_cast<char>(0xC0 | code_point >> 6));
    text.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  }
  return text;
}

// Byte-level BPE keeps printable Latin-1 characters and moves the other bytes to U+0100 and up.
bool IsKept(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

json::object ByteLevel() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", false},
          {"use_regex", false}};
}

}  // namespace

std::vector<std::string> TinyTokens() {
  std::vector<std::string> tokens;
  int moved = 0;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(Utf8(IsKept(byte) ? byte : 0x100 + moved++));
  }
  tokens.insert(tokens.end(), {"<|endoftext|>", "<|im_start|>", "<|im_end|>"});
  return tokens;
}

std::string TinyChatTemplate() {
  return "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
         "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
}

std::string TinyTokenizerJson() {
  const std::vector<std::string> tokens = TinyTokens();
  json::object vocabulary;
  json::array added;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (id < 256) {
      vocabulary[tokens[id]] = id;
      continue;
    }
    added.push_back(json::object{{"id", id},
                                 {"content", tokens[id]},
                                 {"single_word", false},
                                 {"lstrip", false},
                                 {"rstrip", false},
                                 {"normalized", false},
                                 {"special", true}});
  }
  const json::object model = {{"type", "BPE"},
                              {"dropout", nullptr},
                              {"unk_token", nullptr},
                              {"continuing_subword_prefix", nullptr},
                              {"end_of_word_suffix", nullptr},
                              {"fuse_unk", false},
                              {"byte_fallback", false},
                              {"ignore_merges", false},
                              {"vocab", vocabulary},
                              {"merges", json::array()}};
  return json::serialize(json::object{{"version", "1.0"},
                                      {"truncation", nullptr},
                                      {"padding", nullptr},
                                      {"added_tokens", added},
                                      {"normalizer", nullptr},
                                      {"pre_tokenizer", ByteLevel()},
                                      {"post_processor", nullptr},
                                      {"decoder", ByteLevel()},
                                      {"model", model}});
}

std::string TinyTokenizerConfigJson() {
  return json::serialize(json::object{{"tokenizer_class", "PreTrainedTokenizerFast"},
                                      {"add_bos_token", false},
                                      {"bos_token", nullptr},
                                      {"eos_token", "<|im_end|>"},
                                      {"pad_token", "<|endoftext|>"},
                                      {"clean_up_tokenization_spaces", false},
                                      {"chat_template", TinyChatTemplate()}});
}

}  // namespace tokenrouter
