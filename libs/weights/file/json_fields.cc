#include "libs/weights/file/json_fields.h"

#include <boost/json/parse.hpp>
#include <boost/system/error_code.hpp>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

std::string KindName(json::kind kind) {
  const json::string_view name = json::to_string(kind);
  return std::string(name.data(), name.size());
}

absl::Status Missing(const std::string& key, const std::string& where) {
  return absl::NotFoundError(absl::StrCat(where, ": no field '", key, "'"));
}

absl::Status WrongKind(const json::value& value, const std::string& key, const char* expected,
                       const std::string& where) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": '", key, "' is ", KindName(value.kind()), ", expected ", expected));
}

absl::StatusOr<int64_t> ToInt(const json::value& value, const std::string& key,
                              const std::string& where) {
  boost::system::error_code error;
  if (value.is_int64() || value.is_uint64()) {
    const auto number = value.to_number<int64_t>(error);
    if (!error) return number;
  }
  return WrongKind(value, key, "an integer below 2^63", where);
}

}  // namespace

absl::StatusOr<json::object> ParseJsonObject(std::span<const std::byte> text,
                                             const std::string& where) {
  boost::system::error_code error;
  json::value value = json::parse(
      json::string_view(reinterpret_cast<const char*>(text.data()), text.size()), error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": not valid JSON: ", error.message()));
  }
  if (!value.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": JSON is ", KindName(value.kind()), ", expected an object"));
  }
  return std::move(value.get_object());
}

const json::value* FindJson(const json::object& object, const std::string& key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

absl::StatusOr<int64_t> JsonInt(const json::object& object, const std::string& key,
                                const std::string& where) {
  const json::value* value = FindJson(object, key);
  if (value == nullptr) return Missing(key, where);
  return ToInt(*value, key, where);
}

absl::StatusOr<int64_t> JsonIntOr(const json::object& object, const std::string& key,
                                  int64_t fallback, const std::string& where) {
  if (FindJson(object, key) == nullptr) return fallback;
  return JsonInt(object, key, where);
}

absl::StatusOr<double> JsonFloat(const json::object& object, const std::string& key,
                                 const std::string& where) {
  const json::value* value = FindJson(object, key);
  if (value == nullptr) return Missing(key, where);
  if (!value->is_number()) return WrongKind(*value, key, "a number", where);
  boost::system::error_code error;
  const auto number = value->to_number<double>(error);
  if (error) return WrongKind(*value, key, "a number", where);
  return number;
}

absl::StatusOr<double> JsonFloatOr(const json::object& object, const std::string& key,
                                   double fallback, const std::string& where) {
  if (FindJson(object, key) == nullptr) return fallback;
  return JsonFloat(object, key, where);
}

absl::StatusOr<bool> JsonBoolOr(const json::object& object, const std::string& key, bool fallback,
                                const std::string& where) {
  const json::value* value = FindJson(object, key);
  if (value == nullptr) return fallback;
  if (const bool* flag = value->if_bool()) return *flag;
  return WrongKind(*value, key, "a boolean", where);
}

absl::StatusOr<std::string> JsonString(const json::object& object, const std::string& key,
                                       const std::string& where) {
  const json::value* value = FindJson(object, key);
  if (value == nullptr) return Missing(key, where);
  if (const json::string* text = value->if_string()) return std::string(text->data(), text->size());
  return WrongKind(*value, key, "a string", where);
}

absl::StatusOr<std::vector<int64_t>> JsonInts(const json::object& object, const std::string& key,
                                              const std::string& where) {
  const json::value* value = FindJson(object, key);
  std::vector<int64_t> numbers;
  if (value == nullptr) return numbers;
  if (const json::array* array = value->if_array()) {
    for (const json::value& element : *array) {
      TR_ASSIGN_OR_RETURN(const int64_t number, ToInt(element, key, where));
      numbers.push_back(number);
    }
    return numbers;
  }
  TR_ASSIGN_OR_RETURN(const int64_t number, ToInt(*value, key, where));
  numbers.push_back(number);
  return numbers;
}

absl::StatusOr<std::vector<std::string>> JsonStrings(const json::object& object,
                                                     const std::string& key,
                                                     const std::string& where) {
  std::vector<std::string> texts;
  const json::value* value = FindJson(object, key);
  if (value == nullptr) return texts;
  const json::array* array = value->if_array();
  if (array == nullptr) return WrongKind(*value, key, "an array of strings", where);
  for (const json::value& element : *array) {
    const json::string* text = element.if_string();
    if (text == nullptr) return WrongKind(element, key, "an array of strings", where);
    texts.emplace_back(text->data(), text->size());
  }
  return texts;
}

absl::Status UnsupportedField(const std::string& where, const std::string& field,
                              const std::string& value, const std::string& supported) {
  return absl::InvalidArgumentError(
      absl::StrCat(where, ": '", field, "' is ", value, ", supported: ", supported));
}

}  // namespace tokenrouter
