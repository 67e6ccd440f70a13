#include "tests/bench/engine/engine_cell.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "libs/status/status_macros.h"
#include "tests/bench/measure/percentile.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

constexpr double kNanosecondsPerMicrosecond = 1e3;

double NowUs() {
  return static_cast<double>(absl::GetCurrentTimeNanos()) / kNanosecondsPerMicrosecond;
}

}  // namespace

double Rates::Middle() const { return per_s.empty() ? 0 : Median(per_s); }

double Rates::Low() const {
  return per_s.empty() ? 0 : *std::min_element(per_s.begin(), per_s.end());
}

double Rates::High() const {
  return per_s.empty() ? 0 : *std::max_element(per_s.begin(), per_s.end());
}

OthersMeter::OthersMeter(std::vector<pid_t> processes)
    : processes_(processes.size()), meter_(std::move(processes)) {}

absl::Status OthersMeter::Start() {
  started_us_ = NowUs();
  return meter_.Start();
}

absl::StatusOr<double> OthersMeter::Stop() {
  TR_RETURN_IF_ERROR(meter_.Stop());
  const double machine_us = (NowUs() - started_us_) * std::thread::hardware_concurrency();
  double own_us = 0;
  for (size_t i = 0; i < processes_; ++i) own_us += meter_.used_us(i);
  return std::clamp(1 - meter_.idle_share() - own_us / machine_us, 0.0, 1.0);
}

json::object RowStart(const char* part, const MeasuredEngine& engine,
                      const std::string& model_path) {
  return {{"bench", "engine"},         {"part", part},
          {"engine", engine.name()},   {"model", std::filesystem::path(model_path).stem().string()},
          {"format", engine.format()}, {"kv_format", engine.kv_format()}};
}

double Rounded(double value) { return std::round(value * 1e3) / 1e3; }

void PrintRow(const json::object& row) { std::cout << json::serialize(row) << std::endl; }

}  // namespace tokenrouter
