// The results of one engine in one cell of engine_bench: rates of its rounds and their row.
// Threads: none.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/engine/measured_engine.h"
#include "tests/bench/measure/cpu_meter.h"

namespace tokenrouter {

// Rates of the rounds of one cell.
struct Rates {
  std::vector<double> per_s;
  double Middle() const;  // The median; 0 without a round.
  double Low() const;
  double High() const;
};

// The share of the machine's processor time that other processes used while a cell ran. It tells
// whether the figures can be trusted.
class OthersMeter {
 public:
  // `processes`: those that the cell uses, each once.
  explicit OthersMeter(std::vector<pid_t> processes);
  absl::Status Start();
  // In [0, 1] of all cores since Start.
  absl::StatusOr<double> Stop();

 private:
  const size_t processes_;
  CpuMeter meter_;
  double started_us_ = 0;
};

// bench, part, engine, model, format and kv_format of a row.
boost::json::object RowStart(const char* part, const MeasuredEngine& engine,
                             const std::string& model_path);
// Rounded to three digits behind the point, as rows have them.
double Rounded(double value);
// Writes the row as a line.
void PrintRow(const boost::json::object& row);

}  // namespace tokenrouter
