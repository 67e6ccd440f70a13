#include "services/gateway/text/pair_text_model.h"

#include <boost/json.hpp>

#include "absl/time/clock.h"
#include "libs/status/status_macros.h"
#include "libs/text/incremental_detokenizer.h"

namespace tokenrouter {
namespace {

class PairDetokenizer final : public Detokenizer {
 public:
  explicit PairDetokenizer(const Tokenizer& tokenizer) : detokenizer_(tokenizer) {}
  std::string Push(TokenId id) override { return detokenizer_.Push(id); }
  std::string Flush() override { return detokenizer_.Flush(); }

 private:
  IncrementalDetokenizer detokenizer_;
};

std::string MessagesJson(std::span<const ChatTurn> messages) {
  boost::json::array list;
  for (const ChatTurn& turn : messages) {
    list.push_back(boost::json::object{{"role", turn.role}, {"content", turn.content}});
  }
  return boost::json::serialize(list);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PairTextModel>> PairTextModel::Load(const std::string& path) {
  std::unique_ptr<PairTextModel> model(new PairTextModel());
  TR_ASSIGN_OR_RETURN(model->tokenizer_, Tokenizer::Load(path));
  auto chat_template = ChatTemplate::Create(*model->tokenizer_);
  if (chat_template.ok()) {
    model->template_ = *std::move(chat_template);
  } else if (!absl::IsNotFound(chat_template.status())) {
    return chat_template.status();
  }
  return model;
}

absl::StatusOr<std::string> PairTextModel::RenderChat(std::span<const ChatTurn> messages,
                                                      std::string_view kwargs_json) const {
  if (template_ == nullptr) {
    return absl::InvalidArgumentError(
        "this model has no chat template; use /v1/completions with a prompt");
  }
  ChatInput input;
  const std::string messages_json = MessagesJson(messages);
  input.messages_json = messages_json;
  input.variables_json = kwargs_json;
  input.now = absl::Now();
  return template_->Render(input);
}

absl::StatusOr<std::vector<TokenId>> PairTextModel::Encode(std::string_view text,
                                                           bool add_special) const {
  // Clients use special tokens on purpose (fill-in-the-middle prompts), as with other servers.
  return tokenizer_->Encode(text, {.parse_special = true, .add_special = add_special});
}

std::string PairTextModel::Decode(std::span<const TokenId> ids) const {
  return tokenizer_->Decode(ids);
}

std::unique_ptr<Detokenizer> PairTextModel::NewDetokenizer() const {
  return std::make_unique<PairDetokenizer>(*tokenizer_);
}

std::string PairTextModel::TokenBytes(TokenId id) const {
  return std::string(tokenizer_->TokenBytes(id));
}

}  // namespace tokenrouter
