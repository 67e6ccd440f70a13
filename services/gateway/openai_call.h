// OpenAiCall is one completion request over HTTP: it pulls a Generation and says what to write, as
// one JSON reply or as server-sent events. The status is held back until the first token or the
// refusal, so overload is never a 200. Ownership: owns its Generation; dropping the call cancels
// it. Threads: as HttpCall. Memory: a reply that is not streamed holds its whole text, bounded by
// the context; a stream holds what one credit allows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "services/gateway/generation.h"
#include "services/gateway/http_call.h"
#include "services/gateway/openai_reply.h"

namespace tokenrouter {

// A reply with the error as JSON, with Retry-After where there is a hint.
HttpStep ErrorReply(const absl::Status& status);
HttpStep JsonReply(std::string json);

class OpenAiCall final : public HttpCall {
 public:
  OpenAiCall(ReplyHeader header, bool stream, std::unique_ptr<Generation> generation)
      : header_(std::move(header)), stream_(stream), generation_(std::move(generation)) {}

  HttpStep Next() override;
  void OnWritten() override;
  std::string_view KeepAlive() const override { return ": ping\n\n"; }

 private:
  HttpStep NextOfStream();
  HttpStep NextOfReply();
  HttpStep Head();
  std::string Events(const Generation::Progress& progress);
  void AddEnd(const Generation::Progress& progress, std::string* events);

  const ReplyHeader header_;
  const bool stream_;
  const std::unique_ptr<Generation> generation_;
  bool head_sent_ = false;
  bool first_ = true;  // No event has gone out.
  bool over_ = false;  // The generation has ended; what is pending is the last.
  bool failed_ = false;
  std::string pending_;  // Events behind the head.
  std::string text_;     // Of a reply that is not streamed.
  std::vector<TokenInfo> tokens_;
};

}  // namespace tokenrouter
