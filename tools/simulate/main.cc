// simulate: the predicted rate of routed decoding on measured or assumed step curves.
//   simulate --set=h200 --n=1,16,64 --r=0.1 --devices=1 --policy=all
//   simulate --small=base=3,id=.01 --large=base=15,row=.02,id=.128 --n=8 --json=true
#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "tools/simulate/cell.h"
#include "tools/simulate/plot.h"
#include "tools/simulate/simulate_options.h"

namespace tokenrouter {
namespace {

void Print(const Cell& cell, const SimulateOptions& options) {
  if (options.json) {
    std::cout << boost::json::serialize(JsonRow(cell, options)) << std::endl;
  } else {
    std::cout << TableLine(cell, options) << std::endl;
  }
}

absl::Status WritePlot(const std::vector<Cell>& cells, const SimulateOptions& options) {
  std::ofstream file(options.plot);
  file << PlotSvg(cells, options);
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("--plot=", options.plot, ": cannot be written"));
}

absl::Status Run(int argc, const char* const* argv) {
  TR_ASSIGN_OR_RETURN(const std::optional<SimulateOptions> options,
                      ParseSimulateOptions(argc, argv));
  if (!options) return absl::OkStatus();
  if (!options->json) std::cout << TableHeader() << std::endl;
  std::vector<Cell> all;
  for (const double r : options->r) {
    for (const int requests : options->requests) {
      TR_ASSIGN_OR_RETURN(const std::vector<Cell> cells, SimulateLoad(*options, requests, r));
      for (const Cell& cell : cells) {
        Print(cell, *options);
        all.push_back(cell);
      }
    }
  }
  return options->plot.empty() ? absl::OkStatus() : WritePlot(all, *options);
}

}  // namespace
}  // namespace tokenrouter

int main(int argc, char** argv) {
  const absl::Status status = tokenrouter::Run(argc, argv);
  if (!status.ok()) std::cerr << "simulate: " << status.message() << "\n";
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}
