#include "services/gateway/openai/json_fields.h"

#include <boost/json.hpp>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libs/telemetry/plain_json.h"
#include "services/gateway/errors/api_error.h"
#include "services/gateway/text/absl_view.h"
#include "services/gateway/text/utf8.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr size_t kShownBytes = 64;

}  // namespace

std::string ShownJson(const json::value& value) {
  // Containers may be megabytes: only their kind is shown.
  if (value.is_object()) return "an object";
  if (value.is_array()) return absl::StrCat("an array of ", value.get_array().size());
  if (value.is_string() && value.get_string().size() > kShownBytes) {
    const std::string_view text(value.get_string().data(), value.get_string().size());
    return absl::StrCat("\"", View(Utf8Prefix(text, kShownBytes)), "...\"");
  }
  return PlainJson(value);
}

const char* JsonKindName(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "boolean";
    case json::kind::int64:
    case json::kind::uint64:
      return "integer";
    case json::kind::double_:
      return "number";
    case json::kind::string:
      return "string";
    case json::kind::array:
      return "array";
    case json::kind::object:
      return "object";
  }
  return "value";
}

const json::value* JsonFields::Find(std::string_view name) const {
  const json::value* value = object_.if_contains(json::string_view(name.data(), name.size()));
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string JsonFields::Name(std::string_view name) const {
  return absl::StrCat(prefix_, View(name));
}

absl::Status JsonFields::WrongType(std::string_view name, const json::value& value,
                                   std::string_view expected) const {
  const std::string field = Name(name);
  return InvalidField(field, absl::StrCat(field, " must be ", View(expected), ", got ",
                                          JsonKindName(value), " ", ShownJson(value)));
}

absl::StatusOr<std::optional<bool>> JsonFields::Bool(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_bool()) return WrongType(name, *value, "a boolean");
  return std::optional<bool>(value->get_bool());
}

absl::StatusOr<std::optional<int64_t>> JsonFields::Integer(std::string_view name, int64_t low,
                                                           int64_t high) const {
  const json::value* value = Find(name);
  if (value == nullptr) return std::optional<int64_t>();
  if (!value->is_int64() && !value->is_uint64()) return WrongType(name, *value, "an integer");
  // uint64 is only used by the parser for values above int64.
  const bool too_large =
      value->is_uint64() &&
      value->get_uint64() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const int64_t number = too_large ? 0 : value->to_number<int64_t>();
  if (too_large || number < low || number > high) {
    const std::string field = Name(name);
    return InvalidField(field, absl::StrCat(field, " is ", ShownJson(*value), "; allowed: [", low,
                                            ", ", high, "]"));
  }
  return std::optional<int64_t>(number);
}

absl::StatusOr<std::optional<double>> JsonFields::Number(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number()) return WrongType(name, *value, "a number");
  return std::optional<double>(value->to_number<double>());
}

absl::StatusOr<std::optional<std::string>> JsonFields::String(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return WrongType(name, *value, "a string");
  return std::optional<std::string>(std::string(value->get_string()));
}

absl::StatusOr<const json::object*> JsonFields::Object(std::string_view name) const {
  const json::value* value = Find(name);
  if (value == nullptr) return static_cast<const json::object*>(nullptr);
  if (!value->is_object()) return WrongType(name, *value, "an object");
  return &value->get_object();
}

}  // namespace tokenrouter
