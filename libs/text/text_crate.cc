#include "libs/text/text_crate.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tokenrouter::text_crate {

std::string Take(tr_buffer buffer) {
  std::string text(buffer.data, buffer.size);
  tr_buffer_free(buffer);
  return text;
}

absl::Status StatusOf(int32_t code, tr_buffer error, std::string_view what) {
  if (code == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(code),
                      absl::StrCat(absl::string_view(what.data(), what.size()), ": ", Take(error)));
}

}  // namespace tokenrouter::text_crate
