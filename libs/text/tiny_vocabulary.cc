#include "libs/text/tiny_vocabulary.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

constexpr int kOrdinary = 1;
constexpr int kUnknown = 2;
constexpr int kControl = 3;
constexpr int kUserDefined = 4;
constexpr int kUnused = 5;
constexpr int kByte = 6;

constexpr std::string_view kTemplate =
    "{%- for message in messages %}\n"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}";

constexpr std::string_view kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The character below U+0800 that spells `byte` in a byte-level vocabulary.
std::string Spelled(int byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

std::string Quoted(const std::string& text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
}

void WriteFile(const std::string& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary);
  file << contents;
  file.close();
  TR_CHECK(!file.fail()) << path;
}

struct JsonParts {
  std::string vocab;
  std::string merges;
  std::string added;
};

JsonParts PartsOf(const TinyVocabulary& vocabulary) {
  JsonParts parts;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string token = Quoted(vocabulary.tokens[id]);
    const int type = vocabulary.types[id];
    const bool is_added = type == kUnknown || type == kControl || type == kUserDefined;
    // SentencePiece counts its special tokens among the pieces.
    if (type != kUnused && (!is_added || !vocabulary.scores.empty())) {
      absl::StrAppend(&parts.vocab, parts.vocab.empty() ? "" : ",", token, ":", id);
    }
    if (!is_added) continue;
    absl::StrAppend(&parts.added, parts.added.empty() ? "" : ",", R"({"id":)", id, R"(,"content":)",
                    token, R"(,"single_word":false,"lstrip":false,)",
                    R"("rstrip":false,"normalized":false,"special":)",
                    type == kUserDefined ? "false" : "true", "}");
  }
  for (const std::string& merge : vocabulary.merges) {
    absl::StrAppend(&parts.merges, parts.merges.empty() ? "" : ",", Quoted(merge));
  }
  return parts;
}

std::string TokenizerJson(const TinyVocabulary& vocabulary) {
  const JsonParts parts = PartsOf(vocabulary);
  const std::string byte_level =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false})";
  return absl::StrCat(
      R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)", parts.added,
      R"(],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[)",
      R"({"type":"Split","pattern":{"Regex":)", Quoted(std::string(kPattern)),
      R"(},"behavior":"Isolated","invert":false},)", byte_level, R"(]},"post_processor":null,)",
      R"("decoder":)", byte_level, R"(,"model":{"type":"BPE","vocab":{)", parts.vocab,
      R"(},"merges":[)", parts.merges, "]}}");
}

std::string SentencePieceJson(const TinyVocabulary& vocabulary) {
  const JsonParts parts = PartsOf(vocabulary);
  return absl::StrCat(
      R"({"version":"1.0","added_tokens":[)", parts.added,
      R"(],"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},)",
      R"({"type":"Replace","pattern":{"String":" "},"content":"\u2581"}]},"pre_tokenizer":null,)",
      R"("post_processor":null,"decoder":{"type":"Sequence","decoders":[{"type":"Replace",)",
      R"("pattern":{"String":"\u2581"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"},)",
      R"({"type":"Strip","content":" ","start":1,"stop":0}]},"model":{"type":"BPE",)",
      R"("unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{)", parts.vocab,
      R"(},"merges":[)", parts.merges, "]}}");
}

// Little-endian GGUF values.
class GgufBytes {
 public:
  template <typename T>
  void Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Text(const std::string& text) {
    Number<uint64_t>(text.size());
    bytes_ += text;
  }
  void Key(const std::string& key, uint32_t type) {
    Text(key);
    Number(type);
    ++keys_;
  }
  void TextKey(const std::string& key, const std::string& value) {
    Key(key, 8);
    Text(value);
  }
  void IdKey(const std::string& key, TokenId value) {
    Key(key, 4);
    Number<uint32_t>(static_cast<uint32_t>(value));
  }
  void TextsKey(const std::string& key, const std::vector<std::string>& values) {
    Key(key, 9);
    Number<uint32_t>(8);
    Number<uint64_t>(values.size());
    for (const std::string& value : values) Text(value);
  }
  void IntsKey(const std::string& key, const std::vector<int>& values) {
    Key(key, 9);
    Number<uint32_t>(5);
    Number<uint64_t>(values.size());
    for (const int value : values) Number<int32_t>(value);
  }
  void FloatsKey(const std::string& key, const std::vector<float>& values) {
    Key(key, 9);
    Number<uint32_t>(6);
    Number<uint64_t>(values.size());
    for (const float value : values) Number(value);
  }
  std::string File() const {
    GgufBytes head;
    head.bytes_ = "GGUF";
    head.Number<uint32_t>(3);
    head.Number<uint64_t>(0);
    head.Number<uint64_t>(keys_);
    return head.bytes_ + bytes_;
  }

 private:
  std::string bytes_;
  uint64_t keys_ = 0;
};

}  // namespace

TinyVocabulary MakeTinyVocabulary() {
  TinyVocabulary tiny;
  const auto add = [&tiny](const std::string& token, int type) {
    tiny.tokens.push_back(token);
    tiny.types.push_back(type);
    return static_cast<TokenId>(tiny.tokens.size() - 1);
  };
  for (int byte = 0; byte < 256; ++byte) add(Spelled(byte), kOrdinary);
  const std::string space = Spelled(' ');
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"t", "h"}, {"th", "e"}, {space, "the"}, {"o", "r"}, {Spelled(0xE4), Spelled(0xBD)}}) {
    tiny.merges.push_back(absl::StrCat(left, " ", right));
    add(left + right, kOrdinary);
  }
  tiny.end_of_text = add("<|endoftext|>", kControl);
  tiny.im_start = add("<|im_start|>", kControl);
  tiny.im_end = add("<|im_end|>", kControl);
  tiny.tool_call = add("<tool_call>", kUserDefined);
  add("[PAD0]", kUnused);
  tiny.chat_template = kTemplate;
  return tiny;
}

TinyVocabulary MakeTinySentencePieces() {
  TinyVocabulary tiny;
  const auto add = [&tiny](const std::string& token, int type, float score) {
    tiny.tokens.push_back(token);
    tiny.types.push_back(type);
    tiny.scores.push_back(score);
    return static_cast<TokenId>(tiny.tokens.size() - 1);
  };
  add("<unk>", kUnknown, 0);
  tiny.end_of_text = add("<s>", kControl, 0);
  tiny.im_end = add("</s>", kControl, 0);
  for (int byte = 0; byte < 256; ++byte) add(absl::StrFormat("<0x%02X>", byte), kByte, 0);
  const std::string space = "\u2581";
  // In the order of their scores, which is the order in which merges are tried.
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"h", "e"}, {space, "t"}, {space + "t", "he"}, {"t", "he"}, {space, space}}) {
    tiny.merges.push_back(absl::StrCat(left, " ", right));
    add(left + right, kOrdinary, -static_cast<float>(tiny.merges.size()));
  }
  for (const std::string letter : {space.c_str(), "t", "h", "e", "o", "r"}) {
    add(letter, kOrdinary, -100);
  }
  return tiny;
}

void WriteTinySentencePieceFolder(const TinyVocabulary& vocabulary, const std::string& folder) {
  std::filesystem::create_directories(folder);
  WriteFile(folder + "/tokenizer.json", SentencePieceJson(vocabulary));
  WriteFile(folder + "/tokenizer_config.json", R"({"bos_token":"<s>","eos_token":"</s>"})");
}

void WriteTinyFolder(const TinyVocabulary& vocabulary, const std::string& folder) {
  std::filesystem::create_directories(folder);
  WriteFile(folder + "/tokenizer.json", TokenizerJson(vocabulary));
  WriteFile(folder + "/tokenizer_config.json",
            absl::StrCat(R"({"bos_token":null,"eos_token":{"content":"<|im_end|>"},)",
                         R"("chat_template":)", Quoted(vocabulary.chat_template), "}"));
  WriteFile(
      folder + "/generation_config.json",
      absl::StrCat(R"({"eos_token_id":[)", vocabulary.im_end, ",", vocabulary.end_of_text, "]}"));
}

void WriteTinyGguf(const TinyVocabulary& vocabulary, const std::string& path,
                   const std::string& pre, const std::string& model) {
  GgufBytes file;
  file.TextKey("general.architecture", "qwen2");
  file.TextKey("tokenizer.ggml.model", model);
  file.TextKey("tokenizer.ggml.pre", pre);
  file.TextsKey("tokenizer.ggml.tokens", vocabulary.tokens);
  file.IntsKey("tokenizer.ggml.token_type", vocabulary.types);
  if (vocabulary.scores.empty()) file.TextsKey("tokenizer.ggml.merges", vocabulary.merges);
  if (!vocabulary.scores.empty()) file.FloatsKey("tokenizer.ggml.scores", vocabulary.scores);
  file.IdKey("tokenizer.ggml.eos_token_id", vocabulary.im_end);
  file.IdKey("tokenizer.ggml.bos_token_id", vocabulary.end_of_text);
  file.TextKey("tokenizer.chat_template", vocabulary.chat_template);
  WriteFile(path, file.File());
}

}  // namespace tokenrouter
