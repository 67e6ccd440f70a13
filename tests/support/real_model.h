// The folder of the model files that tests labelled `model` use.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tokenrouter {

inline constexpr const char* kSmallModelFile = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
inline constexpr const char* kLargeModelFile = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";
inline constexpr const char* kSmolLmFile = "smollm2-135m-instruct-q4_1.gguf";

// TOKENROUTER_MODELS, as the launcher sets it, or the launcher's default folder. The file need not
// be there.
inline std::string RealModelPath(const std::string& file) {
  if (const char* const folder = std::getenv("TOKENROUTER_MODELS"))
    return std::string(folder) + "/" + file;
  const char* const home = std::getenv("HOME");
  return std::string(home == nullptr ? "" : home) + "/.cache/tokenrouter/models/" + file;
}

inline bool HasRealModel(const std::string& file) {
  return std::filesystem::exists(RealModelPath(file));
}

}  // namespace tokenrouter
