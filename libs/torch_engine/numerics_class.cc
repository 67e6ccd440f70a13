#include "libs/torch_engine/numerics_class.h"

#include <span>

#include "libs/torch_engine/numerics_build.h"
#include "libs/weights/file/content_hash.h"

namespace tokenrouter {

std::string NumericsClass(const std::string& device, const std::string& model_fingerprint) {
  ContentHash hash;
  for (const std::string& part : {std::string(kNumericsBuild), device, model_fingerprint}) {
    hash.Add(std::as_bytes(std::span(part)));
  }
  return hash.Hex();
}

}  // namespace tokenrouter
