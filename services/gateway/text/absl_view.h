// absl::string_view is a distinct type where Abseil was built for C++14, as Debian's is.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace tokenrouter {

inline absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace tokenrouter
