#include "tests/bench/serve/measured_curve.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "libs/status/status_macros.h"
#include "tests/bench/measure/percentile.h"

namespace tokenrouter {
namespace {

constexpr int64_t kIdsOfOneRow[] = {1, 2, 4, 8, 16, 24, 32, 64, 128};
constexpr int64_t kRowsOfOneId[] = {1, 2, 4, 8, 16};
constexpr int kMaxRows = 16;
constexpr int kFillChunk = 64;  // Ids per step while the contexts are filled.

double Interpolate(const std::map<int64_t, double>& points, double x) {
  auto high = points.lower_bound(static_cast<int64_t>(x));
  if (high != points.end() && static_cast<double>(high->first) == x) return high->second;
  if (high == points.begin()) return high->second;
  if (high == points.end() || std::next(high) == points.end()) high = std::prev(points.end());
  const auto low = std::prev(high);
  const double share =
      (x - static_cast<double>(low->first)) / static_cast<double>(high->first - low->first);
  return low->second + share * (high->second - low->second);
}

}  // namespace

double MeasuredCurve::Milliseconds(int rows, int64_t ids) const {
  const double reading = Interpolate(one_row, static_cast<double>(ids));
  return reading + Interpolate(one_id, rows) - Interpolate(one_row, rows);
}

void MeasuredCurve::Add(const MeasuredCurve& other, double share) {
  for (const auto& [ids, ms] : other.one_row) one_row[ids] += share * ms;
  for (const auto& [rows, ms] : other.one_id) one_id[rows] += share * ms;
}

CurveMeter::CurveMeter(Engine* engine, int context) : engine_(engine), context_(context) {
  sampling_.parameters.temperature = 0;
  for (int i = 0; i < 1024; ++i) ids_.push_back(100 + (i * 37) % 150);
}

CurveMeter::~CurveMeter() {
  for (int row = 1; row <= kMaxRows; ++row) {
    engine_->Release(SequenceId{static_cast<uint64_t>(row)});
  }
}

absl::StatusOr<std::unique_ptr<CurveMeter>> CurveMeter::Fill(Engine* engine, int context) {
  auto meter = absl::WrapUnique(new CurveMeter(engine, context));
  for (int row = 1; row <= kMaxRows; ++row) {
    for (int at = 0; at < context; at += kFillChunk) {
      StepBatch batch;
      batch.rows.push_back(meter->Row(row, at, std::min(kFillChunk, context - at), 0));
      TR_RETURN_IF_ERROR(engine->Step(batch, &meter->result_));
    }
  }
  return meter;
}

StepRow CurveMeter::Row(int row, int first, int64_t count, int choices) const {
  return {.sequence = SequenceId{static_cast<uint64_t>(row)},
          .first = first,
          .new_ids = std::span<const TokenId>(ids_).subspan(static_cast<size_t>(first) % 512,
                                                            static_cast<size_t>(count)),
          .choices = choices,
          .sampling = &sampling_};
}

absl::StatusOr<double> CurveMeter::Median(int rows, int64_t ids_per_row, int repeats) {
  std::vector<double> times;
  for (int i = 0; i <= repeats; ++i) {
    StepBatch batch;
    for (int row = 1; row <= rows; ++row) batch.rows.push_back(Row(row, context_, ids_per_row, 1));
    const absl::Time start = absl::Now();
    TR_RETURN_IF_ERROR(engine_->Step(batch, &result_));
    const double ms = absl::ToDoubleMilliseconds(absl::Now() - start);
    if (i > 0) times.push_back(ms);  // The first one warms up.
    for (const StepRow& row : batch.rows) engine_->Truncate(row.sequence, context_);
  }
  return tokenrouter::Median(std::move(times));
}

absl::StatusOr<MeasuredCurve> CurveMeter::Measure(int repeats) {
  MeasuredCurve curve;
  for (const int64_t ids : kIdsOfOneRow) {
    TR_ASSIGN_OR_RETURN(curve.one_row[ids], Median(1, ids, repeats));
  }
  for (const int64_t rows : kRowsOfOneId) {
    TR_ASSIGN_OR_RETURN(curve.one_id[rows], Median(static_cast<int>(rows), 1, repeats));
  }
  return curve;
}

double BestSharedRate(const MeasuredCurve& small, const MeasuredCurve& large, int requests,
                      double r) {
  const auto cost_of = [](const MeasuredCurve& curve) {
    return StepCost([&curve](int rows, int64_t ids) { return curve.Milliseconds(rows, ids); });
  };
  SimulationSetup setup{.small = cost_of(small),
                        .large = cost_of(large),
                        .shared_device = true,
                        .requests = requests,
                        .r = r};
  double best = 0;
  for (int m = 1; m <= requests; ++m) {
    const auto result = Simulate(setup, {.kind = BatchingPolicy::Kind::kStatic, .m_large = m});
    if (result.ok()) best = std::max(best, result->committed_per_s);
  }
  return best;
}

}  // namespace tokenrouter
