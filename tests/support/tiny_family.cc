#include "tests/support/tiny_family.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tokenrouter {
namespace {

struct Family {
  const char* name;
  Architecture architecture;
  void (*change)(TinyModelSpec&);
};

void Nothing(TinyModelSpec&) {}
// Wider than an even share of the hidden channels, as published models of the family are.
void WideHeads(TinyModelSpec& spec) { spec.head_dim = 48; }
void WideHeadsTied(TinyModelSpec& spec) {
  WideHeads(spec);
  spec.tied_embeddings = true;
}

// Longer than a KV block, and no multiple of one.
void Window(TinyModelSpec& spec) { spec.sliding_window = 40; }

// All scalings: golden prompts go beyond this.
constexpr int64_t kOriginalContext = 64;

void Llama3(TinyModelSpec& spec) {
  spec.rope.scaling = RopeScaling::kLlama3;
  spec.rope.factor = 8;
  spec.rope.original_context = kOriginalContext;
}
void Yarn(TinyModelSpec& spec) {
  spec.rope.scaling = RopeScaling::kYarn;
  spec.rope.factor = 4;
  spec.rope.original_context = kOriginalContext;
}
// Everything that yarn's files may state.
void YarnStated(TinyModelSpec& spec) {
  Yarn(spec);
  spec.head_dim = 48;
  spec.rope.theta = 50000;
  spec.rope.beta_fast = 8;
  spec.rope.beta_slow = 0.5;
  spec.rope.attention_factor = 1.25;
}

constexpr Family kFamilies[] = {
    {"llama", Architecture::kLlama, Nothing},   {"qwen2", Architecture::kQwen2, Nothing},
    {"qwen3", Architecture::kQwen3, WideHeads}, {"qwen3_tied", Architecture::kQwen3, WideHeadsTied},
    {"mistral", Architecture::kLlama, Window},  {"llama3", Architecture::kLlama, Llama3},
    {"yarn", Architecture::kQwen2, Yarn},       {"yarn_stated", Architecture::kQwen3, YarnStated},
};

}  // namespace

std::vector<std::string> TinyFamilies() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

absl::StatusOr<TinyModelSpec> TinyFamily(const std::string& family, const std::string& size,
                                         uint64_t seed) {
  if (size != "small" && size != "large") {
    return absl::InvalidArgumentError(
        absl::StrCat("size of a tiny model is '", size, "', expected small or large"));
  }
  for (const Family& known : kFamilies) {
    if (family != known.name) continue;
    TinyModelSpec spec =
        size == "small" ? TinySmall(known.architecture, seed) : TinyLarge(known.architecture, seed);
    known.change(spec);
    return spec;
  }
  return absl::InvalidArgumentError(absl::StrCat("family of a tiny model is '", family,
                                                 "', expected one of ",
                                                 absl::StrJoin(TinyFamilies(), ", ")));
}

}  // namespace tokenrouter
