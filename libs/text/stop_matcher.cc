#include "libs/text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

absl::StatusOr<StopMatcher> StopMatcher::Create(std::vector<std::string> stops, bool include_stop) {
  if (stops.size() > kMaxStopStrings) {
    return absl::InvalidArgumentError(
        absl::StrCat(stops.size(), " stop strings are over the limit of ", kMaxStopStrings));
  }
  std::vector<Stop> prepared;
  for (std::string& stop : stops) {
    if (stop.empty()) return absl::InvalidArgumentError("a stop string is empty");
    if (stop.size() > kMaxStopStringBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a stop string of ", stop.size(), " bytes is over the limit of ", kMaxStopStringBytes));
    }
    prepared.push_back(Prepare(std::move(stop)));
  }
  return StopMatcher(std::move(prepared), include_stop);
}

StopMatcher::Stop StopMatcher::Prepare(std::string text) {
  Stop stop;
  stop.borders.assign(text.size(), 0);
  for (size_t i = 1, border = 0; i < text.size(); ++i) {
    while (border > 0 && text[i] != text[border]) border = stop.borders[border - 1];
    if (text[i] == text[border]) ++border;
    stop.borders[i] = border;
  }
  stop.text = std::move(text);
  return stop;
}

bool StopMatcher::Advance(Stop& stop, char byte) {
  while (stop.matched > 0 && byte != stop.text[stop.matched]) {
    stop.matched = stop.borders[stop.matched - 1];
  }
  if (byte == stop.text[stop.matched]) ++stop.matched;
  return stop.matched == stop.text.size();
}

void StopMatcher::Feed(char byte, int64_t tokens) {
  ++seen_;
  for (size_t i = 0; i < stops_.size(); ++i) {
    if (!Advance(stops_[i], byte)) continue;
    const size_t begin = seen_ - stops_[i].text.size();
    if (match_.has_value() && match_->begin <= begin) continue;
    const size_t text_end = include_stop_ ? seen_ : begin;
    match_ = StopMatch{i, begin, seen_, text_end, TokensFor(text_end, tokens), tokens};
  }
}

int64_t StopMatcher::TokensFor(size_t end, int64_t latest) const {
  for (const TokenMark& mark : marks_) {
    if (mark.end >= end) return mark.tokens;
  }
  return latest;
}

std::string StopMatcher::Push(std::string_view chunk, int64_t tokens) {
  if (match_.has_value()) return "";
  held_.append(chunk);
  for (const char byte : chunk) {
    Feed(byte, tokens);
    if (match_.has_value()) {
      std::string text = Release(match_->text_end - released_);
      held_.clear();
      return text;
    }
  }
  if (!chunk.empty()) marks_.push_back({seen_, tokens});
  return Release(held_.size() - LongestBeginning());
}

size_t StopMatcher::LongestBeginning() const {
  size_t longest = 0;
  for (const Stop& stop : stops_) longest = std::max(longest, stop.matched);
  return longest;
}

std::string StopMatcher::Release(size_t bytes) {
  std::string text = held_.substr(0, bytes);
  held_.erase(0, bytes);
  released_ += bytes;
  while (!marks_.empty() && marks_.front().end < released_) marks_.pop_front();
  return text;
}

std::string StopMatcher::Flush() { return Release(held_.size()); }

}  // namespace tokenrouter
