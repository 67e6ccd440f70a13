// RequestIntake turns a client's request into a token request: model name, roles, chat
// template, tokenizer, ranges, stops, context limit, seed, routing algorithm. HTTP and gRPC share
// it. Ownership: the TextModel must outlive it. Threads: const and thread-safe; costs CPU time in
// proportion to the prompt. Errors: NOT_FOUND for an unknown model, INVALID_ARGUMENT with the field
// as param, UNAVAILABLE while the context limit of the pair is not known.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "libs/text/stop_matcher.h"
#include "proto/packages.h"
#include "services/gateway/generation/generation_request.h"
#include "services/gateway/text/text_model.h"
#include "tokenrouter/internal/v1/scheduler.pb.h"

namespace tokenrouter {

struct IntakeOptions {
  std::string pair = "default";
  std::string model_name = "tokenrouter";
  std::vector<std::string> aliases;
  RoutingChoice default_routing{"entropy", {{"threshold", 0.45}}};
};

// Ready to be submitted.
struct TokenRequest {
  wire::GenerationSpec spec;
  std::vector<TokenId> ids;  // The prompt.
  StopMatcher stops;         // Stop strings; the gateway alone matches them.
};

// INVALID_ARGUMENT naming `field` and the allowed ids.
absl::Status CheckTokenId(const char* field, TokenId id, int32_t usable_ids);

class RequestIntake {
 public:
  // `draw_seed` must be thread-safe.
  RequestIntake(IntakeOptions options, const TextModel* model, std::function<uint64_t()> draw_seed);

  absl::Status CheckModel(std::string_view name) const;
  absl::StatusOr<TokenRequest> Prepare(const GenerationRequest& request,
                                       const wire::PairStatus& pair) const;

  const IntakeOptions& options() const { return options_; }
  const TextModel& text() const { return *model_; }

 private:
  absl::StatusOr<std::string> Render(const std::vector<ChatTurn>& turns,
                                     const std::string& template_kwargs_json) const;
  absl::StatusOr<std::vector<TokenId>> Tokenize(const GenerationRequest& request,
                                                int64_t limit) const;
  absl::Status CheckIds(const GenerationRequest& request, const std::vector<TokenId>& prompt,
                        int32_t usable_ids) const;

  const IntakeOptions options_;
  const TextModel* const model_;
  const std::function<uint64_t()> draw_seed_;
};

// 64 bits from the operating system.
uint64_t DrawSystemSeed();

// INVALID_ARGUMENT unless 1 to 128 characters of letters, digits, '.', '_', ':' and '-'.
absl::Status CheckRequestId(std::string_view id);
// A fresh one.
std::string DrawRequestId();

// "threshold=0.45,window=4". INVALID_ARGUMENT names the part that is not name=number.
absl::StatusOr<std::map<std::string, double>> ParseRoutingParameters(std::string_view text);

}  // namespace tokenrouter
