// How long the prompts and answers of a pair are.
#pragma once

namespace tokenrouter {

// Means over recent requests.
struct RequestLengths {
  double uncomputed = 0;  // Uncached ids of a prompt.
  double limit = 0;       // Tokens that a request may write.
  double generated = 0;   // Tokens of finished requests; 0: none yet.

  // The tokens of a request, or what it may write while none has finished; 0 if there was none.
  double Answer() const { return generated > 0 ? generated : limit; }
};

}  // namespace tokenrouter
