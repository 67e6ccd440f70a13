// Names the build as far as the bits of results go: generated from a hash of the sources that
// compute them, the compiler and libtorch (numerics_build.cmake).
#pragma once

namespace tokenrouter {

extern const char* const kNumericsBuild;

}  // namespace tokenrouter
