#include "tools/simulate/plot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "libs/batching_model/policy_name.h"
#include "libs/status/check.h"
#include "tools/simulate/chart.h"

namespace tokenrouter {

std::string PlotSvg(const std::vector<Cell>& cells, const SimulateOptions& options) {
  TR_CHECK(!cells.empty());
  Chart chart{.title = absl::StrFormat(
                  "Tokens/s as multiples of the large model alone (dashed): %s, %d device%s, "
                  "noise %g",
                  options.set, options.devices, options.devices == 1 ? "" : "s", options.noise)};
  std::map<std::pair<double, BatchingPolicy::Kind>, ChartSeries> lines;
  for (const Cell& cell : cells) {
    ChartSeries& line = lines[{cell.r, cell.asked}];
    line.label = absl::StrFormat("%s, r = %g", PolicyName(cell.asked), cell.r);
    line.points.push_back({static_cast<double>(cell.requests), cell.MultipleOfLargeAlone()});
    chart.high = std::max(chart.high, cell.MultipleOfLargeAlone());
  }
  chart.high = std::ceil(chart.high * 2) / 2;
  for (auto& [key, line] : lines) chart.series.push_back(std::move(line));
  return ChartSvg(chart);
}

}  // namespace tokenrouter
