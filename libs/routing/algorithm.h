// Algorithm is a token-routing rule, written from the view of ONE request; the system batches it.
// Three functions:
//   1. Route runs after a forward pass, in the worker that ran it. It decides what becomes of the
//      proposal and which side decodes next.
//   2. Send runs in the worker that hands off. It decides what the peer receives.
//   3. Receive runs in the worker that takes over, after its pass over the payload. It decides how
//      much of the tentative tail is kept.
// Ownership: an object holds validated parameters of one request and nothing else. All memory of a
// request is its RequestState, which travels with it through failover. Threads: const and
// thread-safe. A decision at a position reads nothing after it, no clock and no I/O.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "libs/inference/step_batch.h"
#include "libs/tokens/keyed_random.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

inline constexpr size_t kMaxRequestState = 64;  // Bytes.

// The algorithm's memory of one request; opaque to all other code. Starts empty.
class RequestState {
 public:
  // Reads a trivially copyable T; a default T when the state is empty.
  template <typename T>
  T As() const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxRequestState);
    T value{};
    if (size_ == sizeof(T)) std::memcpy(&value, bytes_.data(), sizeof(T));
    return value;
  }
  template <typename T>
  void Set(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxRequestState);
    std::memcpy(bytes_.data(), &value, sizeof(T));
    size_ = sizeof(T);
  }
  std::string_view bytes() const { return {bytes_.data(), size_}; }
  // False when longer than kMaxRequestState.
  [[nodiscard]] bool Assign(std::string_view bytes) {
    if (bytes.size() > kMaxRequestState) return false;
    std::memcpy(bytes_.data(), bytes.data(), bytes.size());
    size_ = bytes.size();
    return true;
  }

 private:
  std::array<char, kMaxRequestState> bytes_{};
  size_t size_ = 0;
};

// How long the side that receives the decode grant may decode.
struct Window {
  enum class Kind : uint8_t {
    kTokens = 0,     // For `tokens` tokens, then back.
    kUntilEnd = 1,   // Until the request ends.
    kDelimiter = 2,  // Until it has written one of `delimiters`.
    kOwnRule = 3,    // Until its own Route says Go.
  };
  Kind kind = Kind::kOwnRule;
  int32_t tokens = 0;  // kTokens: at least 1.
  std::vector<TokenId> delimiters = {};

  static Window Tokens(int32_t tokens) { return {Kind::kTokens, tokens, {}}; }
  static Window UntilEnd() { return {Kind::kUntilEnd, 0, {}}; }
  static Window OwnRule() { return {Kind::kOwnRule, 0, {}}; }
};

// Evidence about the position that follows the last id of the forward pass.
struct RouteStep {
  Role role;          // Whose forward pass it was.
  Position position;  // Canonical position of the proposal.
  int32_t generated;  // Tokens since the prompt before it, tail included.
  TokenId proposal;
  const StepSignals& signals;
  std::span<const TokenId> tail;  // Tentative ids before the proposal, oldest first.
  uint64_t seed;                  // Of the request; with choice and position it keys every draw.
  uint32_t choice;
};

struct Decision {
  enum class Proposal : uint8_t {
    kCommit,     // The proposal and the tail before it become final.
    kTentative,  // The proposal joins the tail.
    kDrop,       // The proposal is dropped; the tail stays as it is.
  };
  Proposal proposal = Proposal::kCommit;
  bool go = false;  // False: the same side continues decoding.
  Role to = Role::kSmall;
  Window window = {};

  static Decision Stay() { return {}; }
  static Decision StayTentative() { return {.proposal = Proposal::kTentative}; }
  static Decision Go(Role to, Window window, Proposal proposal = Proposal::kDrop) {
    return {.proposal = proposal, .go = true, .to = to, .window = std::move(window)};
  }
};

// Which side decodes first.
struct Opening {
  Role role = Role::kSmall;
  Window window = Window::OwnRule();
};

// What the peer receives besides the ids that it does not have (those always travel).
struct Payload {
  int32_t verify = 0;  // Trailing tentative ids at which the peer must also return its own choice.
};

// The result of the peer: its choice at each verified position, then the one after the last id.
struct Arrival {
  Role role;
  std::span<const TokenId> tail;    // The ids that were verified.
  std::span<const Choice> choices;  // tail.size() + 1 entries.
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  virtual std::string_view name() const = 0;
  // The signals that Route needs on that side.
  virtual SignalRequest Signals(Role role) const = 0;
  virtual Opening Open() const { return {}; }

  virtual Decision Route(const RouteStep& step, RequestState* state) const = 0;

  virtual Payload Send(std::span<const TokenId> tail, const RequestState& /*state*/) const {
    return {.verify = static_cast<int32_t>(tail.size())};
  }
  // Returns how many ids of the tail are kept, 0..tail.size(). The choice at that index becomes the
  // proposal.
  virtual int32_t Receive(const Arrival& arrival, RequestState* /*state*/) const {
    return static_cast<int32_t>(arrival.tail.size());
  }
};

}  // namespace tokenrouter
