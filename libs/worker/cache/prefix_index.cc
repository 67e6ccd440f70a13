#include "libs/worker/cache/prefix_index.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "libs/status/check.h"

namespace tokenrouter {

struct PrefixIndex::Root {
  std::string tenant;
  int64_t sequences = 0;  // That hold blocks of its tree.
};

struct PrefixIndex::Node {
  Node* parent = nullptr;  // Null for a first block.
  Root* root = nullptr;
  std::vector<TokenId> ids;
  std::vector<SequenceId> holders;  // In no order but that the last one came last.
};

PrefixIndex::PrefixIndex(int32_t block_size) : block_size_(block_size) {
  TR_CHECK(block_size > 0) << "block size " << block_size;
}

PrefixIndex::~PrefixIndex() = default;

PrefixIndex::Key PrefixIndex::KeyOf(const std::unique_ptr<Node>& node) {
  return {node->parent, node->root, node->ids};
}

bool PrefixIndex::Equal(const Key& a, const Key& b) {
  return a.parent == b.parent && a.root == b.root && std::ranges::equal(a.ids, b.ids);
}

size_t PrefixIndex::KeyHash::operator()(const Key& key) const { return absl::HashOf(key); }

size_t PrefixIndex::KeyHash::operator()(const std::unique_ptr<Node>& node) const {
  return (*this)(KeyOf(node));
}

PrefixIndex::Match PrefixIndex::Find(const std::string& tenant,
                                     std::span<const TokenId> ids) const {
  const auto root = roots_.find(tenant);
  if (root == roots_.end()) return {};
  Match match;
  const Node* parent = nullptr;
  while (static_cast<size_t>(block_size_) <= ids.size()) {
    const auto node = nodes_.find(Key{parent, root->second.get(), ids.first(block_size_)});
    if (node == nodes_.end()) break;
    parent = node->get();
    ids = ids.subspan(block_size_);
    ++match.blocks;
  }
  if (parent != nullptr) match.holder = parent->holders.back();
  return match;
}

void PrefixIndex::Extend(SequenceId sequence, const std::string& tenant,
                         std::span<const TokenId> ids) {
  const size_t blocks = ids.size() / block_size_;
  if (blocks == 0) return;
  Chain& chain = chains_[sequence];
  if (chain.size() >= blocks) return;
  if (chain.empty()) {
    std::unique_ptr<Root>& root = roots_[tenant];
    if (root == nullptr) root = std::make_unique<Root>(tenant);
    ++root->sequences;
  }
  Root* const root = chain.empty() ? roots_[tenant].get() : chain[0].node->root;
  TR_CHECK(root->tenant == tenant) << "sequence " << sequence.value << " changed its tenant";
  while (chain.size() < blocks) {
    Node* const parent = chain.empty() ? nullptr : chain.back().node;
    const Key key{parent, root, ids.subspan(chain.size() * block_size_, block_size_)};
    auto found = nodes_.find(key);
    if (found == nodes_.end()) {
      auto node = std::make_unique<Node>();
      node->parent = parent;
      node->root = root;
      node->ids.assign(key.ids.begin(), key.ids.end());
      found = nodes_.insert(std::move(node)).first;
    }
    Node* const node = found->get();
    chain.push_back({node, node->holders.size()});
    node->holders.push_back(sequence);
  }
}

void PrefixIndex::Truncate(SequenceId sequence, int32_t blocks) {
  TR_CHECK(blocks >= 0) << "blocks " << blocks;
  const auto found = chains_.find(sequence);
  if (found == chains_.end()) return;
  Chain& chain = found->second;
  Root* const root = chain[0].node->root;
  while (chain.size() > static_cast<size_t>(blocks)) {
    Leave(chain.back(), chain.size() - 1);
    chain.pop_back();
  }
  if (!chain.empty()) return;
  chains_.erase(found);
  if (--root->sequences == 0) roots_.erase(std::string(root->tenant));
}

void PrefixIndex::Leave(const Held& held, size_t depth) {
  std::vector<SequenceId>& holders = held.node->holders;
  if (holders.size() == 1) {
    // A holder of a block holds those above it too, so no block is left below this one.
    nodes_.erase(nodes_.find(Key{held.node->parent, held.node->root, held.node->ids}));
    return;
  }
  if (held.place + 1 < holders.size()) {
    holders[held.place] = holders.back();
    chains_.at(holders.back())[depth].place = held.place;
  }
  holders.pop_back();
}

int32_t PrefixIndex::Blocks(SequenceId sequence) const {
  const auto found = chains_.find(sequence);
  return found == chains_.end() ? 0 : static_cast<int32_t>(found->second.size());
}

std::optional<SequenceId> PrefixIndex::AnotherHolder(SequenceId sequence) const {
  const std::vector<SequenceId>& holders = chains_.at(sequence).back().node->holders;
  if (holders.back() != sequence) return holders.back();
  if (holders.size() > 1) return holders[holders.size() - 2];
  return std::nullopt;
}

bool PrefixIndex::IsPrefix(SequenceId part, SequenceId whole) const {
  const auto p = chains_.find(part);
  const auto w = chains_.find(whole);
  if (p == chains_.end() || w == chains_.end() || p->second.size() > w->second.size()) return false;
  return w->second[p->second.size() - 1].node == p->second.back().node;
}

}  // namespace tokenrouter
