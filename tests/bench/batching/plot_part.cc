#include "tests/bench/batching/plot_part.h"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libs/status/status_macros.h"
#include "tools/simulate/chart.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

absl::StatusOr<std::vector<json::object>> ReadRows(const std::string& path,
                                                   absl::string_view part) {
  std::ifstream file(path);
  std::vector<json::object> rows;
  for (std::string line; std::getline(file, line);) {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    if (error || !value.is_object()) continue;  // What else a run printed.
    const json::value* const name = value.as_object().if_contains("part");
    if (name != nullptr && name->is_string() &&
        name->as_string() == std::string_view(part.data(), part.size())) {
      rows.push_back(value.as_object());
    }
  }
  if (!rows.empty()) return rows;
  return absl::InvalidArgumentError(absl::StrCat("--rows=", path, " has no rows of part ", part));
}

double Number(const json::object& row, const char* key) {
  return json::value_to<double>(row.at(key));
}

std::string String(const json::object& row, const char* key) {
  return json::value_to<std::string>(row.at(key));
}

absl::Status Write(const Chart& chart, const std::string& path) {
  std::ofstream file(path);
  file << ChartSvg(chart);
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("--plot=", path, ": cannot be written"));
}

// Series by label, points by number of requests, the axis around all values.
void AddSeries(std::map<std::string, std::vector<ChartPoint>> points, bool dots, Chart* chart) {
  for (auto& [label, line] : points) {
    std::stable_sort(line.begin(), line.end(), [](const ChartPoint& a, const ChartPoint& b) {
      return a.requests < b.requests;
    });
    for (const ChartPoint& point : line) {
      chart->low = std::min(chart->low, point.value);
      chart->high = std::max(chart->high, point.value);
    }
    chart->series.push_back({label, std::move(line), dots});
  }
}

}  // namespace

absl::Status PlotGrid(const BatchingBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(const auto rows, ReadRows(options.rows, "grid"));
  std::map<std::string, std::vector<ChartPoint>> points;
  for (const json::object& row : rows) {
    points[absl::StrFormat("%.0f device%s, noise %.0f %%", Number(row, "devices"),
                           Number(row, "devices") == 1 ? "" : "s", 100 * Number(row, "noise"))]
        .push_back({Number(row, "n"), Number(row, "ratio")});
  }
  Chart chart{.title = absl::StrCat("Simulated tokens/s of the model over the best baseline: ",
                                    rows.size(), " loads"),
              .decimals = 2,
              .unit = "",
              .low = 0.98,
              .high = 1.02};
  AddSeries(std::move(points), true, &chart);
  return Write(chart, options.plot);
}

absl::Status PlotTimed(const BatchingBenchOptions& options) {
  TR_ASSIGN_OR_RETURN(const auto rows, ReadRows(options.rows, "timed"));
  std::map<std::string, std::vector<ChartPoint>> points;
  for (const json::object& row : rows) {
    if (String(row, "policy") != "model") continue;
    points[absl::StrFormat("%s, %.0f device%s, r = %g", String(row, "set"), Number(row, "devices"),
                           Number(row, "devices") == 1 ? "" : "s", Number(row, "r"))]
        .push_back({Number(row, "n"), Number(row, "share_of_simulated")});
  }
  if (points.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rows=", options.rows, " has no rows of policy model"));
  }
  Chart chart{.title = "The model on timed engines: measured over simulated tokens/s",
              .decimals = 2,
              .unit = "",
              .low = 0.9,
              .high = 1.05};
  AddSeries(std::move(points), false, &chart);
  return Write(chart, options.plot);
}

}  // namespace tokenrouter
