#include "libs/text/tokenizer_files.h"

#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/gguf_file.h"
#include "libs/weights/mapped_file.h"

namespace tokenrouter {
namespace {

using text_crate::Borrow;

std::vector<tr_text> BorrowAll(std::span<const std::string_view> texts) {
  std::vector<tr_text> all;
  all.reserve(texts.size());
  for (const std::string_view text : texts) all.push_back(Borrow(text));
  return all;
}

absl::StatusOr<std::vector<int32_t>> TokenTypes(const GgufFile& file) {
  const std::string key = "tokenizer.ggml.token_type";
  std::vector<int32_t> types;
  if (!file.Has(key)) return types;
  TR_ASSIGN_OR_RETURN(const auto values, file.GetInts(key));
  types.assign(values.begin(), values.end());
  return types;
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
  TR_ASSIGN_OR_RETURN(const std::string model, file->GetString("tokenizer.ggml.model"));
  TR_ASSIGN_OR_RETURN(const std::string pre, file->GetStringOr("tokenizer.ggml.pre", "default"));
  TR_ASSIGN_OR_RETURN(const auto tokens, file->GetStrings("tokenizer.ggml.tokens"));
  std::span<const std::string_view> merges;
  if (file->Has("tokenizer.ggml.merges")) {
    TR_ASSIGN_OR_RETURN(merges, file->GetStrings("tokenizer.ggml.merges"));
  }
  TR_ASSIGN_OR_RETURN(const std::vector<int32_t> types, TokenTypes(*file));
  TR_ASSIGN_OR_RETURN(const int64_t bos, file->GetIntOr("tokenizer.ggml.bos_token_id", -1));
  TR_ASSIGN_OR_RETURN(const int64_t eos, file->GetIntOr("tokenizer.ggml.eos_token_id", -1));
  // Files of the Llama 3 family may leave the flag out although the model expects the token.
  TR_ASSIGN_OR_RETURN(const bool add_bos,
                      file->GetBoolOr("tokenizer.ggml.add_bos_token", pre == "llama-bpe"));
  TR_ASSIGN_OR_RETURN(const std::string chat, file->GetStringOr("tokenizer.chat_template", ""));

  const std::vector<tr_text> token_texts = BorrowAll(tokens);
  const std::vector<tr_text> merge_texts = BorrowAll(merges);
  tr_vocabulary vocabulary = {};
  vocabulary.model = Borrow(model);
  vocabulary.pre = Borrow(pre);
  vocabulary.tokens = token_texts.data();
  vocabulary.token_count = token_texts.size();
  vocabulary.merges = merge_texts.data();
  vocabulary.merge_count = merge_texts.size();
  vocabulary.types = types.data();
  vocabulary.type_count = types.size();
  vocabulary.bos_id = bos;
  vocabulary.eos_id = eos;
  vocabulary.add_bos = add_bos && bos >= 0;
  vocabulary.chat_template = Borrow(chat);
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
