// OpenAiCall is one completion request over HTTP: it pulls the choices of its answer and writes
// them as one JSON reply or as server-sent events. Each event belongs to one choice; a choice ends
// with its own event, and usage and [DONE] come after the last. The status is held back until the
// first token or the refusal, so overload is never a 200. Ownership: owns its choices; dropping the
// call cancels them. Threads: as HttpCall. Memory: a reply that is not streamed holds its whole
// text, bounded by choices times context; a stream holds what one credit per choice allows.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "services/gateway/generation/parallel_choices.h"
#include "services/gateway/http/http_call.h"
#include "services/gateway/openai/openai_reply.h"

namespace tokenrouter {

// A reply with the error as JSON, with Retry-After where there is a hint.
HttpStep ErrorReply(const absl::Status& status);
HttpStep JsonReply(std::string json);

class OpenAiCall final : public HttpCall {
 public:
  OpenAiCall(ReplyHeader header, bool stream, std::unique_ptr<ParallelChoices> choices)
      : header_(std::move(header)),
        stream_(stream),
        choices_(std::move(choices)),
        begun_(choices_->size()),
        replies_(stream ? 0 : choices_->size()) {}

  HttpStep Next() override;
  void OnWritten() override;
  std::string_view KeepAlive() const override { return ": ping\n\n"; }

 private:
  HttpStep NextOfStream();
  HttpStep NextOfReply();
  HttpStep Head();
  void Keep(ParallelChoices::ChoiceUpdate update);
  std::string Events(const ParallelChoices::Progress& progress);
  void AddUpdate(const ParallelChoices::ChoiceUpdate& update, std::string* events);
  // Whether this is the first event of the choice.
  bool Begin(int index) { return !std::exchange(begun_[index], 1); }

  const ReplyHeader header_;
  const bool stream_;
  const std::unique_ptr<ParallelChoices> choices_;
  bool head_sent_ = false;
  bool over_ = false;  // All choices have ended; pending_ holds the last bytes.
  bool failed_ = false;
  std::vector<char> begun_;           // Per choice: an event has gone out.
  std::string pending_;               // Events behind the head.
  std::vector<ChoiceReply> replies_;  // Per choice of a reply that is not streamed.
};

}  // namespace tokenrouter
