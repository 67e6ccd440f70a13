#include "tools/simulate/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/simulate/chart.h"

namespace tokenrouter {
namespace {

using ::testing::HasSubstr;

Cell At(int requests, BatchingPolicy::Kind asked, double rate) {
  Cell cell{.requests = requests, .r = .1, .asked = asked, .large_alone_per_s = 100};
  cell.simulated.committed_per_s = rate;
  return cell;
}

TEST(PlotTest, DrawsOneLinePerPolicyFromLeftToRight) {
  using Kind = BatchingPolicy::Kind;
  const std::string svg = PlotSvg({At(1, Kind::kModel, 300), At(1, Kind::kGreedy, 300),
                                   At(16, Kind::kModel, 200), At(16, Kind::kGreedy, 100)},
                                  {});
  EXPECT_THAT(svg, HasSubstr("points=\"60.0,40.0 530.0,156.7 \""));  // 3x, then 2x, of 3x.
  EXPECT_THAT(svg, HasSubstr("points=\"60.0,40.0 530.0,273.3 \""));
  EXPECT_THAT(svg, HasSubstr("model, r = 0.1"));
  EXPECT_THAT(svg, HasSubstr("</svg>"));
}

TEST(PlotTest, OneCellIsEnough) {
  EXPECT_THAT(PlotSvg({At(4, BatchingPolicy::Kind::kModel, 90)}, {}), HasSubstr("<circle"));
}

TEST(ChartTest, DotsAreNotJoinedAndTheAxisStartsAtItsGivenValue) {
  const std::string svg = ChartSvg({.title = "t",
                                    .decimals = 2,
                                    .unit = "",
                                    .low = 0.5,
                                    .high = 1.5,
                                    .series = {{"dots", {{1, 1.5}, {4, 0.5}}, true}}});
  EXPECT_THAT(svg, HasSubstr("cx=\"60.0\" cy=\"40.0\""));
  EXPECT_THAT(svg, HasSubstr("cx=\"530.0\" cy=\"390.0\""));
  EXPECT_THAT(svg, HasSubstr(">0.60</text>"));
  EXPECT_THAT(svg, ::testing::Not(HasSubstr("<polyline")));
}

// Of 0.975 to 1.0925 in two decimals; five equal parts would be labelled 0.98, 1.00, 1.02, 1.05.
TEST(ChartTest, GridLinesStandWhereTheirLabelsSay) {
  const std::string svg = ChartSvg({.title = "t",
                                    .decimals = 2,
                                    .unit = "",
                                    .low = 0.975,
                                    .high = 1.0925,
                                    .series = {{"line", {{1, 1}, {4, 1.05}}}}});
  EXPECT_THAT(svg,
              HasSubstr("x1=\"60.0\" y1=\"315.5\" x2=\"530.0\" y2=\"315.5\" stroke=\"#dddddd\""));
  EXPECT_THAT(svg, HasSubstr("y=\"319.5\" text-anchor=\"end\">1.00</text>"));
  EXPECT_THAT(svg, HasSubstr(">1.08</text>"));
  EXPECT_THAT(svg, ::testing::Not(HasSubstr(">1.05</text>")));
}

}  // namespace
}  // namespace tokenrouter
