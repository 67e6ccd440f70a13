// A small line or dot chart as an SVG, over numbers of requests on a logarithmic axis. Threads:
// pure.
#pragma once

#include <string>
#include <vector>

namespace tokenrouter {

struct ChartPoint {
  double requests = 1;  // > 0
  double value = 0;
};

struct ChartSeries {
  std::string label;
  std::vector<ChartPoint> points;
  bool dots = false;  // Points are not joined.
};

struct Chart {
  std::string title;
  int decimals = 1;          // Of the labels of the vertical axis,
  std::string unit = "x";    // and what follows them.
  double low = 0, high = 1;  // Of the vertical axis.
  double reference = 1;      // A dashed line there.
  std::vector<ChartSeries> series;
};

// REQUIRES: at least one point; low < high.
std::string ChartSvg(const Chart& chart);

}  // namespace tokenrouter
