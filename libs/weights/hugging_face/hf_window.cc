#include "libs/weights/hugging_face/hf_window.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/json_fields.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

// The values that the library that wrote the files uses for absent fields.
constexpr int64_t kDefaultWindow = 4096;
constexpr int64_t kDefaultFullLayers = 28;  // Qwen's max_window_layers.

// The window of layers that have one; null means none, absent the default.
absl::StatusOr<int64_t> StatedWindow(const json::object& config, const std::string& where) {
  if (!config.contains("sliding_window")) return kDefaultWindow;
  if (FindJson(config, "sliding_window") == nullptr) return 0;
  TR_ASSIGN_OR_RETURN(const int64_t window, JsonInt(config, "sliding_window", where));
  if (window > 0) return window;
  return UnsupportedField(where, "sliding_window", absl::StrCat(window),
                          "null or a positive number of tokens");
}

// Qwen: layers below max_window_layers see everything.
absl::StatusOr<int64_t> UpperLayersWindow(const json::object& config, int64_t window,
                                          int64_t layers, const std::string& where) {
  TR_ASSIGN_OR_RETURN(const int64_t full,
                      JsonIntOr(config, "max_window_layers", kDefaultFullLayers, where));
  if (window == 0 || full >= layers) return 0;
  if (full <= 0) return window;
  return UnsupportedField(
      where, "max_window_layers", absl::StrCat(full, " with a sliding window"),
      absl::StrCat("0 or at least the ", layers, " layers, so that all layers are alike"));
}

}  // namespace

absl::StatusOr<int64_t> ReadHfWindow(const json::object& config, const std::string& type,
                                     int64_t layers, const std::string& where) {
  int64_t window = 0;
  const bool qwen = type == "qwen2" || type == "qwen3";
  TR_ASSIGN_OR_RETURN(const bool sliding,
                      JsonBoolOr(config, "use_sliding_window", type == "mistral", where));
  // Llama files may state a window, but the model never had one.
  if (sliding && type != "llama") {
    TR_ASSIGN_OR_RETURN(window, StatedWindow(config, where));
  }
  TR_ASSIGN_OR_RETURN(const std::vector<std::string> types,
                      JsonStrings(config, "layer_types", where));
  if (types.empty()) {
    return qwen ? UpperLayersWindow(config, window, layers, where) : window;
  }
  const auto all = [&](const char* kind) {
    return std::all_of(types.begin(), types.end(), [&](const auto& t) { return t == kind; });
  };
  if (all("full_attention")) return 0;
  if (all("sliding_attention") && window > 0) return window;
  const auto other =
      std::find_if(types.begin(), types.end(), [](const auto& t) { return t != "full_attention"; });
  return UnsupportedField(where, "layer_types", absl::StrCat("'", *other, "' in some layer"),
                          "'full_attention' in all layers, or 'sliding_attention' in all with "
                          "'sliding_window' set");
}

}  // namespace tokenrouter
