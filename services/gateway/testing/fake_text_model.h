// A text model for tests: id b < 256 is the byte b, kEos is a special token without text, and ids
// from kWord on are the words given to the constructor. Chats render as "role: content\n" per
// message. Threads: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "libs/text/utf8_repair.h"
#include "services/gateway/text/text_model.h"

namespace tokenrouter {

class FakeTextModel final : public TextModel {
 public:
  static constexpr TokenId kEos = 256;
  static constexpr TokenId kWord = 257;

  explicit FakeTextModel(std::vector<std::string> words = {}) : words_(std::move(words)) {}

  absl::StatusOr<std::string> RenderChat(std::span<const ChatTurn> messages,
                                         std::string_view kwargs_json) const override {
    if (kwargs_json.find("refuse") != std::string_view::npos) {
      return absl::InvalidArgumentError("the template refuses");
    }
    std::string text;
    for (const ChatTurn& turn : messages) text += turn.role + ": " + turn.content + "\n";
    return text;
  }
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text,
                                              bool /*add_special*/) const override {
    std::vector<TokenId> ids;
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  std::string Decode(std::span<const TokenId> ids) const override {
    std::string bytes;
    for (const TokenId id : ids) bytes += id == kEos ? "" : TokenBytes(id);
    std::string text;
    AppendRepairedUtf8(bytes, /*is_end=*/true, text);
    return text;
  }
  std::unique_ptr<Detokenizer> NewDetokenizer() const override {
    return std::make_unique<Incremental>(*this);
  }
  std::string TokenBytes(TokenId id) const override {
    if (id < 0) return "";
    if (id < 256) return std::string(1, static_cast<char>(id));
    if (id == kEos) return "<eos>";
    const auto word = static_cast<size_t>(id - kWord);
    return word < words_.size() ? words_[word] : "";
  }
  int32_t vocabulary_size() const override { return kWord + static_cast<int32_t>(words_.size()); }
  std::string fingerprint() const override { return "fake"; }

 private:
  class Incremental final : public Detokenizer {
   public:
    explicit Incremental(const FakeTextModel& model) : model_(model) {}
    std::string Push(TokenId id) override {
      return Add(id == kEos ? "" : model_.TokenBytes(id), false);
    }
    std::string Flush() override { return Add("", true); }

   private:
    std::string Add(const std::string& bytes, bool is_end) {
      held_ += bytes;
      std::string text;
      held_.erase(0, AppendRepairedUtf8(held_, is_end, text));
      return text;
    }
    const FakeTextModel& model_;
    std::string held_;
  };

  const std::vector<std::string> words_;
};

}  // namespace tokenrouter
