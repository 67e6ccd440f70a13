// Text for prompts of a wanted length. Threads: none.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace tokenrouter {

// Lines of a program, about 17 ids each; no two seeds share their first line.
inline std::string ProgramLines(int count, int seed) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "value_", seed, "_", i, " = scale(rows[", i * 7 % 31,
                    "], by=", (seed * 13 + i * 5) % 97, ")\n");
  }
  return text;
}

}  // namespace tokenrouter
