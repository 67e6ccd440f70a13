#include "libs/batching_model/policy_name.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tokenrouter {

using Kind = BatchingPolicy::Kind;

absl::string_view PolicyName(Kind kind) {
  switch (kind) {
    case Kind::kGreedy:
      return "greedy";
    case Kind::kStatic:
      return "static";
    case Kind::kFixedWait:
      return "fixed_wait";
    case Kind::kLongestQueue:
      return "longest_queue";
    case Kind::kModel:
      return "model";
  }
  return "?";
}

const std::vector<Kind>& AllPolicyKinds() {
  static const auto* const kinds = new std::vector<Kind>{Kind::kModel, Kind::kGreedy, Kind::kStatic,
                                                         Kind::kFixedWait, Kind::kLongestQueue};
  return *kinds;
}

absl::StatusOr<Kind> ParsePolicyKind(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const Kind kind : AllPolicyKinds()) {
    names.push_back(PolicyName(kind));
    if (name == names.back()) return kind;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("policy \"", name, "\"; allowed: ", absl::StrJoin(names, ", ")));
}

std::string DescribePolicy(const BatchingPolicy& policy, bool shared_device) {
  const std::string name(PolicyName(policy.kind));
  switch (policy.kind) {
    case Kind::kStatic:
      return shared_device ? absl::StrCat(name, " m=", policy.m_large)
                           : absl::StrCat(name, " ", policy.m_small, ",", policy.m_large);
    case Kind::kFixedWait:
      return shared_device
                 ? absl::StrCat(name, " ", policy.wait_large_ms, " ms")
                 : absl::StrCat(name, " ", policy.wait_small_ms, ",", policy.wait_large_ms, " ms");
    case Kind::kModel:
      return shared_device ? absl::StrCat(name, " m=", policy.m_large)
                           : absl::StrFormat("%s steps %.4g,%.4g ms", name, policy.step_small_ms,
                                             policy.step_large_ms);
    case Kind::kGreedy:
    case Kind::kLongestQueue:
      return name;
  }
  return name;
}

}  // namespace tokenrouter
