// Strict reading of one JSON object: each getter checks the type and says field, value and what is
// allowed. A field that is absent or null is nullopt. Ownership: refers to the object, which must
// outlive it. Threads: const. Errors: INVALID_ARGUMENT with the field as its param (api_error.h).
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tokenrouter {

// Text of the value as JSON, cut to a length fit for an error message.
std::string ShownJson(const boost::json::value& value);
const char* JsonKindName(const boost::json::value& value);

class JsonFields {
 public:
  // `prefix` names the object in errors: "" for the body, "stream_options." for a nested one.
  JsonFields(const boost::json::object& object, std::string prefix)
      : object_(object), prefix_(std::move(prefix)) {}

  // Null when absent or JSON null.
  const boost::json::value* Find(std::string_view name) const;

  absl::StatusOr<std::optional<bool>> Bool(std::string_view name) const;
  // A JSON integer in [low, high]; 3.0 is not one.
  absl::StatusOr<std::optional<int64_t>> Integer(std::string_view name, int64_t low,
                                                 int64_t high) const;
  // Any JSON number; ranges are checked by the caller.
  absl::StatusOr<std::optional<double>> Number(std::string_view name) const;
  absl::StatusOr<std::optional<std::string>> String(std::string_view name) const;
  // The pointer is null when absent.
  absl::StatusOr<const boost::json::object*> Object(std::string_view name) const;

  std::string Name(std::string_view name) const;
  absl::Status WrongType(std::string_view name, const boost::json::value& value,
                         std::string_view expected) const;

 private:
  const boost::json::object& object_;
  const std::string prefix_;
};

}  // namespace tokenrouter
