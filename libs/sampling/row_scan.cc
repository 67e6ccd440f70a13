#include "libs/sampling/row_scan.h"

#include <functional>
#include <limits>

#include "libs/status/check.h"

namespace tokenrouter {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

}  // namespace

void RowScan::Read(std::span<const float> logits) {
  TR_CHECK(!logits.empty());
  logits_ = logits;
  maxima_.resize(RowBlocks(static_cast<int64_t>(logits.size())));
  BestRowKernels().block_maxima(logits.data(), static_cast<int64_t>(logits.size()), maxima_.data());
  max_ = *std::max_element(maxima_.begin(), maxima_.end());
  argmax_ = std::max<TokenId>(FindValue(max_, 1), 0);
}

void RowScan::FindLargest(int64_t count, std::vector<RowEntry>* entries) {
  TR_CHECK(count > 0);
  entries->clear();
  // `count` blocks reach the bound, hence at least `count` ids do.
  float bound = kMinusInfinity;
  if (count <= blocks()) {
    order_.assign(maxima_.begin(), maxima_.end());
    std::nth_element(order_.begin(), order_.begin() + (count - 1), order_.end(), std::greater<>());
    bound = order_[count - 1];
  }
  for (int64_t b = 0; b < blocks(); ++b) {
    if (maxima_[b] < bound) continue;
    const std::span<const float> values = block(b);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= bound && values[i] > kMinusInfinity) {
        entries->push_back({static_cast<TokenId>(b * kRowBlock + i), values[i]});
      }
    }
  }
  if (entries->empty()) return;
  const auto keep = std::min<int64_t>(count, static_cast<int64_t>(entries->size()));
  std::nth_element(entries->begin(), entries->begin() + (keep - 1), entries->end(), Before);
  entries->resize(keep);
}

void RowScan::CollectValues(float bound, std::vector<float>* values) const {
  // Written without a branch per value, since logits are random.
  bound = std::max(bound, std::numeric_limits<float>::lowest());
  values->resize(logits_.size());
  size_t count = 0;
  for (int64_t b = 0; b < blocks(); ++b) {
    if (maxima_[b] < bound) continue;
    for (const float value : block(b)) {
      (*values)[count] = value;
      count += value >= bound;
    }
  }
  values->resize(count);
}

TokenId RowScan::FindValue(float value, int64_t ordinal) const {
  TokenId last = -1;
  for (int64_t b = 0; b < blocks(); ++b) {
    if (maxima_[b] < value) continue;
    const std::span<const float> values = block(b);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != value) continue;
      last = static_cast<TokenId>(b * kRowBlock + i);
      if (--ordinal == 0) return last;
    }
  }
  return last;
}

}  // namespace tokenrouter
