#include "tools/simulate/plot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libs/batching_model/policy_name.h"
#include "libs/status/check.h"

namespace tokenrouter {
namespace {

// Pixels.
constexpr double kWidth = 760, kHeight = 440, kLeft = 60, kRight = 230, kTop = 40, kBottom = 50;
constexpr int kGridLines = 5;
// Readable by colour-blind people, in this order (Okabe and Ito).
constexpr const char* kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                   "#e69f00", "#56b4e9", "#000000"};

struct Scale {
  double low, high;  // Of the requests, as logarithms.
  double top;        // Of the multiples.
  double X(int requests) const {
    const double span = std::max(high - low, 1e-9);
    return kLeft + (std::log2(requests) - low) / span * (kWidth - kLeft - kRight);
  }
  double Y(double multiple) const {
    return kHeight - kBottom - multiple / top * (kHeight - kTop - kBottom);
  }
};

Scale ScaleOf(const std::vector<Cell>& cells) {
  Scale scale{INFINITY, -INFINITY, 1};
  for (const Cell& cell : cells) {
    scale.low = std::min(scale.low, std::log2(cell.requests));
    scale.high = std::max(scale.high, std::log2(cell.requests));
    scale.top = std::max(scale.top, cell.MultipleOfLargeAlone());
  }
  scale.top = std::ceil(scale.top * 2) / 2;
  return scale;
}

std::string Text(double x, double y, absl::string_view anchor, absl::string_view text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                         text);
}

std::string Axes(const std::vector<Cell>& cells, const Scale& scale) {
  std::string svg;
  for (int i = 0; i <= kGridLines; ++i) {
    const double multiple = scale.top * i / kGridLines, y = scale.Y(multiple);
    absl::StrAppendFormat(&svg,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                          "stroke=\"#dddddd\"/>\n",
                          kLeft, y, kWidth - kRight, y);
    svg += Text(kLeft - 8, y + 4, "end", absl::StrFormat("%.1fx", multiple));
  }
  int last = 0;
  for (const Cell& cell : cells) {
    if (cell.requests == last) continue;
    last = cell.requests;
    svg += Text(scale.X(last), kHeight - kBottom + 18, "middle", absl::StrCat(last));
  }
  svg += Text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "requests decoding at once");
  absl::StrAppendFormat(&svg,
                        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#555555\" "
                        "stroke-dasharray=\"5 4\"/>\n",
                        kLeft, scale.Y(1), kWidth - kRight, scale.Y(1));
  return svg;
}

}  // namespace

std::string PlotSvg(const std::vector<Cell>& cells, const SimulateOptions& options) {
  TR_CHECK(!cells.empty());
  const Scale scale = ScaleOf(cells);
  std::map<std::pair<double, BatchingPolicy::Kind>, std::vector<const Cell*>> lines;
  for (const Cell& cell : cells) lines[{cell.r, cell.asked}].push_back(&cell);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += Text(kLeft, 22, "start",
              absl::StrFormat("Tokens/s as multiples of the large model alone (dashed): %s, %d "
                              "device%s, noise %g",
                              options.set, options.devices, options.devices == 1 ? "" : "s",
                              options.noise));
  svg += Axes(cells, scale);
  size_t index = 0;
  for (const auto& [key, line] : lines) {
    const char* const color = kColors[index % std::size(kColors)];
    std::string points;
    for (const Cell* cell : line) {
      absl::StrAppendFormat(&points, "%.1f,%.1f ", scale.X(cell->requests),
                            scale.Y(cell->MultipleOfLargeAlone()));
    }
    absl::StrAppendFormat(&svg,
                          "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" "
                          "stroke-width=\"2\"/>\n",
                          points, color);
    const double y = kTop + 18.0 * static_cast<double>(index);
    absl::StrAppendFormat(&svg,
                          "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"4\" fill=\"%s\"/>\n",
                          kWidth - kRight + 20, y - 6, color);
    svg += Text(kWidth - kRight + 40, y, "start",
                absl::StrFormat("%s, r = %g", PolicyName(key.second), key.first));
    ++index;
  }
  return svg + "</svg>\n";
}

}  // namespace tokenrouter
