// Reads JSON objects with messages that name file and field. The one place that parses JSON in this
// folder; Boost.JSON is used through its error codes, so nothing is thrown.
// Ownership: values are copies. Threads: free functions without state.
// Units: absent and null are the same thing: NOT_FOUND from Json*, the fallback from Json*Or.
// Errors: INVALID_ARGUMENT "<where>: '<key>' is <kind>, expected <kind>".
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokenrouter {

// `where` is the file, for messages.
absl::StatusOr<boost::json::object> ParseJsonObject(std::span<const std::byte> text,
                                                    const std::string& where);

// Null when absent or JSON null.
const boost::json::value* FindJson(const boost::json::object& object, const std::string& key);

absl::StatusOr<int64_t> JsonInt(const boost::json::object& object, const std::string& key,
                                const std::string& where);
absl::StatusOr<int64_t> JsonIntOr(const boost::json::object& object, const std::string& key,
                                  int64_t fallback, const std::string& where);
// Integers are accepted and widened.
absl::StatusOr<double> JsonFloat(const boost::json::object& object, const std::string& key,
                                 const std::string& where);
absl::StatusOr<double> JsonFloatOr(const boost::json::object& object, const std::string& key,
                                   double fallback, const std::string& where);
absl::StatusOr<bool> JsonBoolOr(const boost::json::object& object, const std::string& key,
                                bool fallback, const std::string& where);
absl::StatusOr<std::string> JsonString(const boost::json::object& object, const std::string& key,
                                       const std::string& where);
// An array of integers, or one integer as an array of one; empty when absent.
absl::StatusOr<std::vector<int64_t>> JsonInts(const boost::json::object& object,
                                              const std::string& key, const std::string& where);

// An array of strings; empty when absent.
absl::StatusOr<std::vector<std::string>> JsonStrings(const boost::json::object& object,
                                                     const std::string& key,
                                                     const std::string& where);

// INVALID_ARGUMENT "<where>: '<field>' is <value>, supported: <supported>".
absl::Status UnsupportedField(const std::string& where, const std::string& field,
                              const std::string& value, const std::string& supported);

}  // namespace tokenrouter
