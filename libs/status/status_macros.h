// Early return on error. These two, TR_CHECK and the test matchers are the project's only macros.
//   TR_RETURN_IF_ERROR(Load(path));
//   TR_ASSIGN_OR_RETURN(const auto file, GgufFile::Open(path));
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define TR_RETURN_IF_ERROR(expression)       \
  do {                                       \
    ::absl::Status tr_status = (expression); \
    if (!tr_status.ok()) return tr_status;   \
  } while (false)

#define TR_STATUS_CONCAT_INNER(a, b) a##b
#define TR_STATUS_CONCAT(a, b) TR_STATUS_CONCAT_INNER(a, b)
#define TR_ASSIGN_OR_RETURN(left, expression) \
  TR_ASSIGN_OR_RETURN_IMPL(TR_STATUS_CONCAT(tr_statusor_, __LINE__), left, expression)
#define TR_ASSIGN_OR_RETURN_IMPL(holder, left, expression) \
  auto holder = (expression);                              \
  if (!holder.ok()) return std::move(holder).status();     \
  left = *std::move(holder)
