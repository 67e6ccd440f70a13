#include "libs/telemetry/plain_json.h"

#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <string_view>

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr size_t kLongestNumber = 32;  // A double takes at most 24 characters.

void AppendDouble(double value, std::string* text) {
  if (!std::isfinite(value)) {
    *text += "null";
    return;
  }
  char digits[kLongestNumber];
  const auto end = std::to_chars(digits, digits + kLongestNumber, value).ptr;
  const std::string_view number(digits, static_cast<size_t>(end - digits));
  *text += number;
  if (number.find_first_of(".e") == std::string_view::npos) *text += ".0";
}

void Append(const json::value& value, std::string* text) {
  if (value.is_double()) {
    AppendDouble(value.get_double(), text);
  } else if (value.is_object()) {
    char before = '{';
    for (const auto& [key, member] : value.get_object()) {
      *text += before;
      *text += json::serialize(key);
      *text += ':';
      Append(member, text);
      before = ',';
    }
    *text += before == '{' ? "{}" : "}";
  } else if (value.is_array()) {
    char before = '[';
    for (const json::value& element : value.get_array()) {
      *text += before;
      Append(element, text);
      before = ',';
    }
    *text += before == '[' ? "[]" : "]";
  } else {
    *text += json::serialize(value);
  }
}

}  // namespace

std::string PlainJson(const json::value& value) {
  std::string text;
  Append(value, &text);
  return text;
}

double ShortestDecimal(float value) {
  char digits[kLongestNumber];
  const auto end = std::to_chars(digits, digits + kLongestNumber, value).ptr;
  double nearest = value;
  std::from_chars(digits, end, nearest);
  return nearest;
}

}  // namespace tokenrouter
