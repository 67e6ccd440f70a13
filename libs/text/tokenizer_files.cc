#include "libs/text/tokenizer_files.h"

#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/mapped_file.h"
#include "libs/weights/gguf/gguf_file.h"

namespace tokenrouter {
namespace {

using text_crate::Borrow;

// The tokenizer's metadata; the texts are views of the file.
struct GgufVocabulary {
  std::string model;
  std::string pre;
  std::vector<tr_text> tokens;
  std::vector<tr_text> merges;
  std::vector<int32_t> types;
  std::vector<float> scores;
  int64_t bos = -1;
  int64_t eos = -1;
  bool add_bos = false;
  bool add_space_prefix = true;
  std::string chat_template;
};

// The three readers below give an empty array for a key that the file does not have.
absl::StatusOr<std::vector<tr_text>> Texts(const GgufFile& file, const std::string& key) {
  std::vector<tr_text> texts;
  if (!file.Has(key)) return texts;
  TR_ASSIGN_OR_RETURN(const auto values, file.GetStrings(key));
  texts.reserve(values.size());
  for (const std::string_view value : values) texts.push_back(Borrow(value));
  return texts;
}

absl::StatusOr<std::vector<int32_t>> Ints(const GgufFile& file, const std::string& key) {
  std::vector<int32_t> ints;
  if (!file.Has(key)) return ints;
  TR_ASSIGN_OR_RETURN(const auto values, file.GetInts(key));
  ints.assign(values.begin(), values.end());
  return ints;
}

absl::StatusOr<std::vector<float>> Floats(const GgufFile& file, const std::string& key) {
  std::vector<float> floats;
  if (!file.Has(key)) return floats;
  TR_ASSIGN_OR_RETURN(const auto values, file.GetFloats(key));
  floats.assign(values.begin(), values.end());
  return floats;
}

absl::StatusOr<GgufVocabulary> ReadVocabulary(const GgufFile& file) {
  GgufVocabulary read;
  TR_ASSIGN_OR_RETURN(read.model, file.GetString("tokenizer.ggml.model"));
  TR_ASSIGN_OR_RETURN(read.pre, file.GetStringOr("tokenizer.ggml.pre", "default"));
  TR_ASSIGN_OR_RETURN(read.tokens, Texts(file, "tokenizer.ggml.tokens"));
  TR_ASSIGN_OR_RETURN(read.merges, Texts(file, "tokenizer.ggml.merges"));
  TR_ASSIGN_OR_RETURN(read.types, Ints(file, "tokenizer.ggml.token_type"));
  TR_ASSIGN_OR_RETURN(read.scores, Floats(file, "tokenizer.ggml.scores"));
  TR_ASSIGN_OR_RETURN(read.bos, file.GetIntOr("tokenizer.ggml.bos_token_id", -1));
  TR_ASSIGN_OR_RETURN(read.eos, file.GetIntOr("tokenizer.ggml.eos_token_id", -1));
  // Files of these two families may leave the flag out although their models expect the token.
  const bool expects_bos = read.model == "llama" || read.pre == "llama-bpe";
  TR_ASSIGN_OR_RETURN(const bool add_bos,
                      file.GetBoolOr("tokenizer.ggml.add_bos_token", expects_bos));
  read.add_bos = add_bos && read.bos >= 0;
  TR_ASSIGN_OR_RETURN(read.add_space_prefix,
                      file.GetBoolOr("tokenizer.ggml.add_space_prefix", true));
  TR_ASSIGN_OR_RETURN(read.chat_template, file.GetStringOr("tokenizer.chat_template", ""));
  return read;
}

tr_vocabulary Borrowed(const GgufVocabulary& owned) {
  tr_vocabulary vocabulary = {};
  vocabulary.model = Borrow(owned.model);
  vocabulary.pre = Borrow(owned.pre);
  vocabulary.tokens = owned.tokens.data();
  vocabulary.token_count = owned.tokens.size();
  vocabulary.merges = owned.merges.data();
  vocabulary.merge_count = owned.merges.size();
  vocabulary.types = owned.types.data();
  vocabulary.type_count = owned.types.size();
  vocabulary.scores = owned.scores.data();
  vocabulary.score_count = owned.scores.size();
  vocabulary.bos_id = owned.bos;
  vocabulary.eos_id = owned.eos;
  vocabulary.add_bos = owned.add_bos;
  vocabulary.add_space_prefix = owned.add_space_prefix;
  vocabulary.chat_template = Borrow(owned.chat_template);
  return vocabulary;
}

// An absent optional file reads as empty.
absl::StatusOr<std::unique_ptr<MappedFile>> OpenIfPresent(const std::string& path) {
  auto file = MappedFile::Open(path);
  if (absl::IsNotFound(file.status())) return std::unique_ptr<MappedFile>();
  return file;
}

tr_text Contents(const std::unique_ptr<MappedFile>& file) {
  if (file == nullptr) return {nullptr, 0};
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

}  // namespace

absl::StatusOr<text_crate::TokenizerHandle> LoadTokenizerFromGguf(const std::string& path) {
  TR_ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file, GgufFile::Open(path));
  TR_ASSIGN_OR_RETURN(const GgufVocabulary owned, ReadVocabulary(*file));
  const tr_vocabulary vocabulary = Borrowed(owned);
  tr_tokenizer* tokenizer = nullptr;
  tr_buffer error;
  const int32_t code = tr_tokenizer_from_vocabulary(&vocabulary, &tokenizer, &error);
  TR_RETURN_IF_ERROR(text_crate::StatusOf(code, error, path));
  return text_crate::TokenizerHandle(tokenizer);
}

absl::StatusOr<text_crate::TokenizerHandle> LoadTokenizerFromFolder(const std::string& path) {
  TR_ASSIGN_OR_RETURN(const auto json, MappedFile::Open(absl::StrCat(path, "/tokenizer.json")));
  TR_ASSIGN_OR_RETURN(const auto config,
                      OpenIfPresent(absl::StrCat(path, "/tokenizer_config.json")));
  TR_ASSIGN_OR_RETURN(const auto generation,
                      OpenIfPresent(absl::StrCat(path, "/generation_config.json")));
  TR_ASSIGN_OR_RETURN(const auto chat, OpenIfPresent(absl::StrCat(path, "/chat_template.jinja")));
  const tr_folder_files files = {Contents(json), Contents(config), Contents(generation),
                                 Contents(chat)};
  tr_tokenizer* tokenizer = nullptr;
  tr_buffer error;
  const int32_t code = tr_tokenizer_from_folder(&files, &tokenizer, &error);
  TR_RETURN_IF_ERROR(text_crate::StatusOf(code, error, path));
  return text_crate::TokenizerHandle(tokenizer);
}

}  // namespace tokenrouter
