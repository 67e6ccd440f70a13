// The basic types of all code that handles tokens.
#pragma once

#include <cstdint>
#include <functional>

namespace tokenrouter {

// A row of the shared vocabulary. Valid ids are 0 <= id < usable ids of the pair.
using TokenId = int32_t;

// Index of a token in the scheduler's canonical history of a request, prompt included. Not a KV
// length.
using Position = int32_t;

// Which of the two models.
enum class Role : uint8_t { kSmall = 0, kLarge = 1 };
inline constexpr int kRoles = 2;
inline constexpr Role Other(Role role) {
  return role == Role::kSmall ? Role::kLarge : Role::kSmall;
}
inline constexpr const char* RoleName(Role role) {
  return role == Role::kSmall ? "small" : "large";
}

// The model that generated a token, or the prompt.
enum class Author : uint8_t { kPrompt = 0, kSmall = 1, kLarge = 2 };
inline constexpr Author AuthorOf(Role role) {
  return role == Role::kSmall ? Author::kSmall : Author::kLarge;
}

// One sequence inside one engine. Chosen by the caller, never reused while the engine holds it.
struct SequenceId {
  uint64_t value = 0;
  friend bool operator==(SequenceId, SequenceId) = default;
  friend auto operator<=>(SequenceId, SequenceId) = default;
  template <typename H>
  friend H AbslHashValue(H state, SequenceId id) {
    return H::combine(std::move(state), id.value);
  }
};

}  // namespace tokenrouter
