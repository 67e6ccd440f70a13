#include "services/gateway/errors/api_error.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "libs/status/check.h"
#include "services/gateway/text/absl_view.h"

namespace tokenrouter {
namespace {

constexpr char kParam[] = "tokenrouter/param";
constexpr char kCode[] = "tokenrouter/code";
constexpr char kRetryAfterMs[] = "tokenrouter/retry_after_ms";
constexpr char kHttpStatus[] = "tokenrouter/http_status";
constexpr absl::string_view kNumberPrefix = "tokenrouter/number/";

absl::Status With(absl::Status status, absl::string_view key, absl::string_view value) {
  status.SetPayload(key, absl::Cord(value));
  return status;
}

std::string Payload(const absl::Status& status, absl::string_view key) {
  const absl::optional<absl::Cord> value = status.GetPayload(key);
  return value.has_value() ? std::string(*value) : std::string();
}

struct Kind {
  int http_status;
  const char* type;
};

// The HTTP counterpart of libs/rpc's status mapping.
Kind KindOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return {400, "invalid_request_error"};
    case absl::StatusCode::kUnauthenticated:
      return {401, "authentication_error"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "permission_error"};
    case absl::StatusCode::kNotFound:
      return {404, "invalid_request_error"};
    case absl::StatusCode::kAlreadyExists:
      return {409, "invalid_request_error"};
    case absl::StatusCode::kResourceExhausted:
      return {429, "rate_limit_error"};
    case absl::StatusCode::kCancelled:
      return {499, "cancelled"};
    case absl::StatusCode::kUnimplemented:
      return {501, "not_supported_error"};
    case absl::StatusCode::kUnavailable:
      return {503, "service_unavailable"};
    case absl::StatusCode::kDeadlineExceeded:
      return {504, "timeout_error"};
    default:
      return {500, "server_error"};
  }
}

}  // namespace

absl::Status InvalidField(std::string_view param, std::string_view message, std::string_view code) {
  absl::Status status = WithParam(absl::InvalidArgumentError(View(message)), param);
  return code.empty() ? status : WithCode(std::move(status), code);
}

absl::Status WithParam(absl::Status status, std::string_view param) {
  return With(std::move(status), kParam, View(param));
}
absl::Status WithCode(absl::Status status, std::string_view code) {
  return With(std::move(status), kCode, View(code));
}
absl::Status WithRetryAfter(absl::Status status, absl::Duration retry_after) {
  return With(std::move(status), kRetryAfterMs,
              absl::StrCat(absl::ToInt64Milliseconds(retry_after)));
}
absl::Status WithNumber(absl::Status status, std::string_view name, int64_t value) {
  return With(std::move(status), absl::StrCat(kNumberPrefix, View(name)), absl::StrCat(value));
}
absl::Status WithHttpStatus(absl::Status status, int http_status) {
  return With(std::move(status), kHttpStatus, absl::StrCat(http_status));
}

ApiError ToApiError(const absl::Status& status) {
  TR_CHECK(!status.ok());
  const Kind kind = KindOf(status.code());
  ApiError error;
  error.http_status = kind.http_status;
  error.type = kind.type;
  error.message = std::string(status.message());
  error.param = Payload(status, kParam);
  error.code = Payload(status, kCode);
  int64_t number = 0;
  if (absl::SimpleAtoi(Payload(status, kRetryAfterMs), &number)) {
    error.retry_after = absl::Milliseconds(number);
  }
  if (absl::SimpleAtoi(Payload(status, kHttpStatus), &number)) {
    error.http_status = static_cast<int>(number);
  }
  status.ForEachPayload([&error](absl::string_view key, const absl::Cord& value) {
    int64_t parsed = 0;
    if (absl::ConsumePrefix(&key, kNumberPrefix) && absl::SimpleAtoi(std::string(value), &parsed)) {
      error.numbers.emplace_back(std::string(key), parsed);
    }
  });
  return error;
}

}  // namespace tokenrouter
