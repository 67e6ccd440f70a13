// PrefixIndex knows which sequences hold which full blocks of committed ids, so that a sequence
// that starts with the same ids need not run them again. It is a tree per tenant: a node is one
// block of ids after all blocks above it, and is found by its parent and the ids themselves, never
// by a hash of them alone, so two prefixes are never confused. Each tenant has its own tree, so no
// client can learn from the latency of an answer what another tenant has sent.
// The index is independent of engines and KV; the caller must not insert tentative ids.
// Ownership: owns the tree. Threads: not thread-safe; lives on the engine's owner loop.
// Cost: O(blocks looked at or changed), independently of the number of sequences.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "libs/tokens/token_types.h"

namespace tokenrouter {

class PrefixIndex {
 public:
  struct Match {
    SequenceId holder;   // The one that came last among those that hold all of it.
    int32_t blocks = 0;  // 0: nothing is held, and there is no holder.
  };

  // REQUIRES: block_size > 0 ids.
  explicit PrefixIndex(int32_t block_size);
  ~PrefixIndex();
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  // The most full blocks at the start of `ids` that one sequence of the tenant holds.
  Match Find(const std::string& tenant, std::span<const TokenId> ids) const;

  // The sequence holds all full blocks of `ids`. REQUIRES: of those that it held before, `ids`
  // starts with the very same ids, and its tenant is the same; Truncate to 0 blocks starts over.
  void Extend(SequenceId sequence, const std::string& tenant, std::span<const TokenId> ids);
  // It holds its first `blocks` blocks at most; one that holds none is forgotten.
  void Truncate(SequenceId sequence, int32_t blocks);

  // Full blocks that it holds; 0 when unknown.
  int32_t Blocks(SequenceId sequence) const;
  // Another sequence that holds everything that this one holds. REQUIRES: Blocks(sequence) > 0.
  std::optional<SequenceId> AnotherHolder(SequenceId sequence) const;
  // True when `whole` holds every block that `part` holds, and `part` holds some.
  bool IsPrefix(SequenceId part, SequenceId whole) const;

  // The number of different blocks that at least one sequence holds.
  size_t nodes() const { return nodes_.size(); }

 private:
  struct Node;
  struct Root;
  struct Key {
    const Node* parent;  // Null: `root` is looked at instead.
    const Root* root;
    std::span<const TokenId> ids;
    template <typename H>
    friend H AbslHashValue(H state, const Key& key) {
      state = H::combine(std::move(state), key.parent, key.root);
      return H::combine_contiguous(std::move(state), key.ids.data(), key.ids.size());
    }
  };
  // The position of a sequence in a node's list of holders.
  struct Held {
    Node* node;
    size_t place;
  };
  using Chain = std::vector<Held>;
  struct KeyHash {
    using is_transparent = void;
    size_t operator()(const Key& key) const;
    size_t operator()(const std::unique_ptr<Node>& node) const;
  };
  struct KeyEqual {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return Equal(KeyOf(a), KeyOf(b));
    }
  };
  static Key KeyOf(const Key& key) { return key; }
  static Key KeyOf(const std::unique_ptr<Node>& node);
  static bool Equal(const Key& a, const Key& b);

  void Leave(const Held& held, size_t depth);

  const int32_t block_size_;
  absl::flat_hash_map<std::string, std::unique_ptr<Root>> roots_;
  absl::flat_hash_set<std::unique_ptr<Node>, KeyHash, KeyEqual> nodes_;
  absl::flat_hash_map<SequenceId, Chain> chains_;
};

}  // namespace tokenrouter
