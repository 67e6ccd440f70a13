// ChatTemplate turns the messages of a conversation into the text that a model was trained on.
// Ownership: owns the compiled template.
// Threads: immutable after Create; Render may be called from any thread at once.
// Units: messages and tools are JSON arrays as in the OpenAI interface, with content in the form
// that the template expects. Empty `tools_json` and `variables_json` stand for none.
// Errors: Create: INVALID_ARGUMENT when a template does not compile, NOT_FOUND when the model has
// none. Render: INVALID_ARGUMENT with the template's own message, for JSON that does not parse and
// for a template that runs too long.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "libs/text/text_crate.h"
#include "libs/text/tokenizer.h"

namespace tokenrouter {

struct ChatInput {
  std::string_view messages_json = {};
  std::string_view tools_json = {};
  std::string_view variables_json = {};  // An object; the names above and below cannot be replaced.
  bool add_generation_prompt = true;
  absl::Time now = absl::UnixEpoch();  // Today for templates that write the date, in UTC.
};

class ChatTemplate {
 public:
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Create(const Tokenizer& tokenizer);
  // `tool_source` is used for requests with tools; empty: `source` is used for all.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Create(std::string_view source,
                                                              std::string_view tool_source,
                                                              std::string_view bos_text,
                                                              std::string_view eos_text);

  absl::StatusOr<std::string> Render(const ChatInput& input) const;

 private:
  ChatTemplate() = default;

  text_crate::TemplateHandle plain_;
  text_crate::TemplateHandle with_tools_;  // Null: plain_ serves for both.
  std::string bos_text_;
  std::string eos_text_;
};

}  // namespace tokenrouter
