#include "libs/text/chat_template.h"

#include <utility>

#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

absl::StatusOr<text_crate::TemplateHandle> Compile(std::string_view source) {
  tr_template* compiled = nullptr;
  tr_buffer error;
  const int32_t code = tr_template_compile(text_crate::Borrow(source), &compiled, &error);
  TR_RETURN_IF_ERROR(text_crate::StatusOf(code, error, "chat template"));
  return text_crate::TemplateHandle(compiled);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Create(const Tokenizer& tokenizer) {
  if (tokenizer.chat_template().empty()) {
    return absl::NotFoundError(
        "the model has no chat template: use plain completions, or put a chat_template.jinja "
        "beside its tokenizer.json");
  }
  return Create(tokenizer.chat_template(), tokenizer.tool_template(), tokenizer.bos_text(),
                tokenizer.eos_text());
}

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Create(std::string_view source,
                                                                   std::string_view tool_source,
                                                                   std::string_view bos_text,
                                                                   std::string_view eos_text) {
  std::unique_ptr<ChatTemplate> result(new ChatTemplate());
  TR_ASSIGN_OR_RETURN(result->plain_, Compile(source));
  if (!tool_source.empty()) {
    TR_ASSIGN_OR_RETURN(result->with_tools_, Compile(tool_source));
  }
  result->bos_text_ = bos_text;
  result->eos_text_ = eos_text;
  return result;
}

absl::StatusOr<std::string> ChatTemplate::Render(const ChatInput& input) const {
  tr_render_input given = {};
  given.messages = text_crate::Borrow(input.messages_json);
  given.tools = text_crate::Borrow(input.tools_json);
  given.extra = text_crate::Borrow(input.variables_json);
  given.bos_text = text_crate::Borrow(bos_text_);
  given.eos_text = text_crate::Borrow(eos_text_);
  given.now_unix_seconds = absl::ToUnixSeconds(input.now);
  given.add_generation_prompt = input.add_generation_prompt;
  const bool has_tools = !input.tools_json.empty() && input.tools_json != "null";
  const auto& compiled = has_tools && with_tools_ != nullptr ? with_tools_ : plain_;
  tr_buffer text;
  tr_buffer error;
  const int32_t code = tr_template_render(compiled.get(), &given, &text, &error);
  TR_RETURN_IF_ERROR(text_crate::StatusOf(code, error, "chat template"));
  return text_crate::Take(text);
}

}  // namespace tokenrouter
