// TextStream turns the committed tokens of one request into text: detokenized piece by piece, with
// the beginnings of stop strings held back, up to where the request ends. The joined pieces do not
// depend on how tokens were cut into events, so a stream and a whole reply show the same text.
// Ownership: owns its detokenizer; the TextModel must outlive it. Threads: one caller at a time.
// Units: positions are canonical, prompt included. Tokens beyond the finish position are neither
// counted nor shown.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/text/stop_matcher.h"
#include "libs/tokens/stop_rules.h"
#include "services/gateway/generation/token_info.h"
#include "services/gateway/link/scheduler_link_core.h"
#include "services/gateway/text/text_model.h"

namespace tokenrouter {

struct TextPiece {
  std::string text;               // May be empty: the token's text is not certain yet.
  std::vector<TokenInfo> tokens;  // One, or none for what comes out at the very end.
};

class TextStream {
 public:
  TextStream(int32_t prompt_length, StopMatcher stops, const TextModel* model);

  // One piece per token. REQUIRES: !finished(); events in order, without an error.
  std::vector<TextPiece> Push(const LinkEvent& event);

  bool finished() const { return reason_ != FinishReason::kNone; }
  FinishReason reason() const { return reason_; }
  // Explains reasons other than stop and length in human-readable form.
  const std::string& detail() const { return detail_; }
  // Length of the history that counts so far; the finish position once finished.
  int32_t position() const { return position_; }
  // True when a stop string ended it, which the scheduler does not know yet.
  bool ended_by_stop_string() const { return stops_.matched(); }
  const UsageCounts& usage() const { return usage_; }

 private:
  TextPiece PushToken(const LinkEvent& event, size_t index, bool is_stop_id);
  void End(const wire::Finish& finish, std::vector<TextPiece>* pieces);

  const TextModel* const model_;
  const std::unique_ptr<Detokenizer> detokenizer_;
  StopMatcher stops_;
  int32_t position_;
  FinishReason reason_ = FinishReason::kNone;
  std::string detail_;
  UsageCounts usage_;
};

}  // namespace tokenrouter
