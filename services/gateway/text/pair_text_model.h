// PairTextModel is the TextModel of a real model pair: tokenizer and chat template from a GGUF file
// or a Hugging Face folder, through libs/text. Ownership: owns both; its detokenizers refer to it.
// Threads: thread-safe. Errors: Load: as libs/text says. A model without a chat template loads;
// RenderChat then says INVALID_ARGUMENT.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "libs/text/chat_template.h"
#include "libs/text/tokenizer.h"
#include "services/gateway/text/text_model.h"

namespace tokenrouter {

class PairTextModel final : public TextModel {
 public:
  static absl::StatusOr<std::unique_ptr<PairTextModel>> Load(const std::string& path);

  absl::StatusOr<std::string> RenderChat(std::span<const ChatTurn> messages,
                                         std::string_view kwargs_json) const override;
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              bool add_special) const override;
  std::string Decode(std::span<const TokenId> ids) const override;
  std::unique_ptr<Detokenizer> NewDetokenizer() const override;
  std::string TokenBytes(TokenId id) const override;
  int32_t vocabulary_size() const override { return tokenizer_->usable_ids(); }
  std::string fingerprint() const override { return tokenizer_->Fingerprint(); }

 private:
  PairTextModel() = default;

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> template_;  // Null: the model has none.
};

}  // namespace tokenrouter
