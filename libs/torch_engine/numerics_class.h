// The name of everything that decides the bits of an engine's results (architecture.md, section 4).
#pragma once

#include <string>

namespace tokenrouter {

// Sixteen hexadecimal digits: a hash of this build's sources and compiler, the device and its
// formats, and the model. Engines with equal classes give equal tokens.
std::string NumericsClass(const std::string& device, const std::string& model_fingerprint);

}  // namespace tokenrouter
