#include "libs/tokens/sampling_parameters.h"

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

absl::Status InRange(const char* field, double value, double low, double high,
                     bool open_low = false) {
  const bool inside = (open_low ? value > low : value >= low) && value <= high;
  if (inside) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is ", value, "; allowed: ", open_low ? "(" : "[", low, ", ", high, "]"));
}

}  // namespace

absl::Status Validate(const SamplingParameters& p) {
  TR_RETURN_IF_ERROR(InRange("temperature", p.temperature, 0, 2));
  TR_RETURN_IF_ERROR(InRange("top_k", p.top_k, 0, 1 << 20));
  TR_RETURN_IF_ERROR(InRange("top_p", p.top_p, 0, 1, /*open_low=*/true));
  TR_RETURN_IF_ERROR(InRange("min_p", p.min_p, 0, 1));
  TR_RETURN_IF_ERROR(InRange("frequency_penalty", p.frequency_penalty, -2, 2));
  TR_RETURN_IF_ERROR(InRange("presence_penalty", p.presence_penalty, -2, 2));
  TR_RETURN_IF_ERROR(InRange("repetition_penalty", p.repetition_penalty, 0, 10, /*open_low=*/true));
  TR_RETURN_IF_ERROR(InRange("logit_bias entries", p.logit_bias.size(), 0, kMaxLogitBias));
  for (const auto& [id, bias] : p.logit_bias) {
    TR_RETURN_IF_ERROR(InRange("logit_bias value", bias, -100, 100));
    if (id < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("logit_bias token id is ", id, "; allowed: >= 0"));
  }
  return absl::OkStatus();
}

}  // namespace tokenrouter
