#include "libs/weights/hugging_face/safetensors_index.h"

#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "libs/status/status_macros.h"
#include "libs/weights/file/json_fields.h"

namespace tokenrouter {
namespace {

namespace json = boost::json;

// Characters with which a name could lead outside the folder.
constexpr std::string_view kForbidden("/\0", 2);

bool IsFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kForbidden) == std::string::npos;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(
    std::span<const std::byte> text, const std::string& path) {
  TR_ASSIGN_OR_RETURN(const json::object index, ParseJsonObject(text, path));
  const json::value* map = FindJson(index, "weight_map");
  const json::object* weights = map == nullptr ? nullptr : map->if_object();
  if (weights == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no object 'weight_map'"));
  }
  std::map<std::string, std::string> shard_of;
  std::set<std::string> shards;
  for (const auto& entry : *weights) {
    const std::string tensor(entry.key().data(), entry.key().size());
    TR_ASSIGN_OR_RETURN(const std::string shard, JsonString(*weights, tensor, path));
    if (!IsFileName(shard)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": tensor '", tensor, "' is in '", shard,
                                                     "', expected a file name without '/'"));
    }
    shards.insert(shard);
    shard_of.emplace(tensor, shard);
  }
  if (shards.size() > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": names ", shards.size(), " shard files, the limit is ", kMaxShards));
  }
  return shard_of;
}

}  // namespace tokenrouter
