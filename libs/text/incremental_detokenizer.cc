#include "libs/text/incremental_detokenizer.h"

#include <string_view>
#include <utility>

#include "libs/text/utf8_repair.h"

namespace tokenrouter {

std::string IncrementalDetokenizer::Push(TokenId id) {
  std::string delta;
  if (skip_special_ && tokenizer_.IsSpecial(id)) return delta;
  std::string_view bytes = tokenizer_.TokenBytes(id);
  if (bytes.empty()) return delta;
  if (std::exchange(drops_space_, false) && bytes.front() == ' ') bytes.remove_prefix(1);
  held_.append(bytes);
  held_.erase(0, AppendRepairedUtf8(held_, /*is_end=*/false, delta));
  return delta;
}

std::string IncrementalDetokenizer::Flush() {
  std::string delta;
  AppendRepairedUtf8(held_, /*is_end=*/true, delta);
  held_.clear();
  return delta;
}

}  // namespace tokenrouter
