// Conversions between the messages of the wire and the C++ vocabulary, in one place for
// scheduler, workers and gateway. Pure and thread-safe. Unset scalars take the defaults of
// SamplingParameters.
// Errors: INVALID_ARGUMENT naming field, value and the allowed range. Unknown enum values of a
// newer peer are refused.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libs/routing/algorithm.h"
#include "libs/tokens/sampling_parameters.h"
#include "libs/tokens/stop_rules.h"
#include "libs/tokens/token_types.h"
#include "proto/packages.h"
#include "tokenrouter/internal/v1/request.pb.h"

namespace tokenrouter {

api::Role ToWire(Role role);
absl::StatusOr<Role> FromWire(api::Role role);
// Of a message that was checked on its arrival. REQUIRES: FromWire accepts it.
inline Role CheckedRole(api::Role role) {
  return role == api::ROLE_SMALL ? Role::kSmall : Role::kLarge;
}

api::FinishReason ToWire(FinishReason reason);
absl::StatusOr<FinishReason> FromWire(api::FinishReason reason);

wire::Window ToWire(const Window& window);
// kTokens needs tokens >= 1; kDelimiter needs at least one delimiter.
absl::StatusOr<Window> FromWire(const wire::Window& window);

api::SamplingParameters ToWire(const SamplingParameters& parameters);
// Validated. An absent seed is 0: only the gateway draws seeds. The bias is sorted by id.
absl::StatusOr<SamplingParameters> FromWire(const api::SamplingParameters& parameters,
                                            uint32_t choice);

wire::StopRules ToWire(const StopRules& rules);
// Refuses max_new_tokens < 1 and min_new_tokens outside [0, max_new_tokens].
absl::StatusOr<StopRules> FromWire(const wire::StopRules& rules);

// The numeric parameters in the form that AlgorithmRegistry takes.
std::map<std::string, double> ParametersFromWire(const api::RoutingParameters& routing);

// Authors travel as one byte per id: 1 small, 2 large. Anything else is refused, prompt included.
inline bool IsAuthor(char byte) {
  return byte == static_cast<char>(Author::kSmall) || byte == static_cast<char>(Author::kLarge);
}
// Of a message that was checked on its arrival. REQUIRES: IsAuthor(byte).
inline Author CheckedAuthor(char byte) { return byte == 2 ? Author::kLarge : Author::kSmall; }

}  // namespace tokenrouter
