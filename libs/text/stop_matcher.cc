#include "libs/text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

absl::StatusOr<StopMatcher> StopMatcher::Create(std::vector<std::string> stops) {
  if (stops.size() > kMaxStopStrings) {
    return absl::InvalidArgumentError(
        absl::StrCat("stop has ", stops.size(), " strings; allowed: at most ", kMaxStopStrings));
  }
  std::vector<Stop> prepared;
  for (std::string& stop : stops) {
    if (stop.empty() || stop.size() > kMaxStopStringBytes) {
      return absl::InvalidArgumentError(absl::StrCat("stop[", prepared.size(), "] has ",
                                                     stop.size(), " bytes; allowed: 1 to ",
                                                     kMaxStopStringBytes));
    }
    prepared.push_back(Prepare(std::move(stop)));
  }
  return StopMatcher(std::move(prepared));
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

size_t StopMatcher::Feed(char byte) {
  size_t longest = 0;
  for (Stop& stop : stops_) {
    if (Advance(stop, byte)) longest = std::max(longest, stop.text.size());
  }
  return longest;
}

std::string StopMatcher::Push(std::string_view chunk) {
  if (matched_) return "";
  for (const char byte : chunk) {
    held_ += byte;
    const size_t complete = Feed(byte);
    if (complete == 0) continue;
    matched_ = true;
    std::string text = Release(held_.size() - complete);
    held_.clear();
    return text;
  }
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
  return text;
}

std::string StopMatcher::Flush() { return Release(held_.size()); }

}  // namespace tokenrouter
