#include "tools/simulate/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

// Pixels.
constexpr double kWidth = 760, kHeight = 440, kLeft = 60, kRight = 230, kTop = 40, kBottom = 50;
constexpr double kDot = 3;
constexpr int kMostGridSteps = 8;
// Readable by colour-blind people, in this order (Okabe and Ito).
constexpr const char* kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#e69f00", "#56b4e9", "#000000"};

struct Scale {
  double left, right;  // Of the requests, as logarithms.
  double low, high;    // Of the values.
  double X(double requests) const {
    const double span = std::max(right - left, 1e-9);
    return kLeft + (std::log2(requests) - left) / span * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return kHeight - kBottom - (value - low) / (high - low) * (kHeight - kTop - kBottom);
  }
};

Scale ScaleOf(const Chart& chart) {
  Scale scale{INFINITY, -INFINITY, chart.low, chart.high};
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      scale.left = std::min(scale.left, std::log2(point.requests));
      scale.right = std::max(scale.right, std::log2(point.requests));
    }
  }
  TR_CHECK(scale.left <= scale.right && scale.low < scale.high);
  return scale;
}

std::string Text(double x, double y, absl::string_view anchor, absl::string_view text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                         text);
}

std::string Rule(const Scale& scale, double value, absl::string_view style) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", kLeft,
                         scale.Y(value), kWidth - kRight, scale.Y(value), style);
}

// The smallest of 1, 2, 5, 10, ... units of the last shown decimal that gives few enough lines, so
// that each label is exact for its line.
double GridStep(double span, int decimals) {
  for (double unit = std::pow(10.0, -decimals);; unit *= 10) {
    for (const double step : {unit, 2 * unit, 5 * unit}) {
      if (step * kMostGridSteps >= span) return step;
    }
  }
}

std::string Axes(const Chart& chart, const Scale& scale) {
  std::string svg;
  const double step = GridStep(scale.high - scale.low, chart.decimals);
  constexpr double kRounding = 1e-9;
  const auto last = static_cast<int64_t>(std::floor(scale.high / step + kRounding));
  for (auto i = static_cast<int64_t>(std::ceil(scale.low / step - kRounding)); i <= last; ++i) {
    const double value = static_cast<double>(i) * step;
    svg += Rule(scale, value, "stroke=\"#dddddd\"");
    svg += Text(kLeft - 8, scale.Y(value) + 4, "end",
                absl::StrFormat("%.*f%s", chart.decimals, value, chart.unit));
  }
  std::set<double> all;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) all.insert(point.requests);
  }
  for (const double requests : all) {
    svg += Text(scale.X(requests), kHeight - kBottom + 18, "middle", absl::StrCat(requests));
  }
  svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "requests decoding at once");
  return svg + Rule(scale, chart.reference, "stroke=\"#555555\" stroke-dasharray=\"5 4\"");
}

std::string Draw(const ChartSeries& series, const Scale& scale, const char* color) {
  const bool dots = series.dots || series.points.size() == 1;  // One point makes no line.
  std::string svg, joined;
  for (const ChartPoint& point : series.points) {
    const double x = scale.X(point.requests), y = scale.Y(point.value);
    if (dots) {
      absl::StrAppendFormat(&svg,
                            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.0f\" fill=\"%s\" "
                            "fill-opacity=\"0.6\"/>\n",
                            x, y, kDot, color);
    }
    absl::StrAppendFormat(&joined, "%.1f,%.1f ", x, y);
  }
  if (dots) return svg;
  return absl::StrFormat(
      "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", joined, color);
}

}  // namespace

std::string ChartSvg(const Chart& chart) {
  const Scale scale = ScaleOf(chart);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += Text(kLeft, 22, "start", chart.title);
  svg += Axes(chart, scale);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const char* const color = kColors[i % std::size(kColors)];
    svg += Draw(chart.series[i], scale, color);
    const double y = kTop + 18.0 * static_cast<double>(i);
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"4\" fill=\"%s\"/>\n",
                          kWidth - kRight + 20, y - 6, color);
    svg += Text(kWidth - kRight + 40, y, "start", chart.series[i].label);
  }
  return svg + "</svg>\n";
}

}  // namespace tokenrouter
