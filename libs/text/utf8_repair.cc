#include "libs/text/utf8_repair.h"

#include <cstdint>

namespace tokenrouter {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What may follow a first byte: how many bytes, and the range of the first of them, which excludes
// overlong forms, surrogates and values above U+10FFFF.
struct Sequence {
  int following;  // Below 0: no character begins with this byte.
  uint8_t low;
  uint8_t high;
};

Sequence SequenceOf(uint8_t first) {
  if (first < 0x80) return {0, 0, 0};
  if (first < 0xC2 || first > 0xF4) return {-1, 0, 0};
  if (first < 0xE0) return {1, 0x80, 0xBF};
  if (first < 0xF0) {
    return {2, uint8_t(first == 0xE0 ? 0xA0 : 0x80), uint8_t(first == 0xED ? 0x9F : 0xBF)};
  }
  return {3, uint8_t(first == 0xF0 ? 0x90 : 0x80), uint8_t(first == 0xF4 ? 0x8F : 0xBF)};
}

enum class Form { kCharacter, kBroken, kUnfinished };

// Looks at the character at the beginning of `bytes`, which is not empty. `size` is what it takes.
Form FirstCharacter(std::string_view bytes, size_t& size) {
  const Sequence sequence = SequenceOf(static_cast<uint8_t>(bytes[0]));
  size = 1;
  if (sequence.following < 0) return Form::kBroken;
  uint8_t low = sequence.low;
  uint8_t high = sequence.high;
  for (int i = 0; i < sequence.following; ++i, ++size) {
    if (size == bytes.size()) return Form::kUnfinished;
    const uint8_t byte = static_cast<uint8_t>(bytes[size]);
    if (byte < low || byte > high) return Form::kBroken;
    low = 0x80;
    high = 0xBF;
  }
  return Form::kCharacter;
}

}  // namespace

size_t AppendRepairedUtf8(std::string_view bytes, bool is_end, std::string& out) {
  size_t used = 0;
  while (used < bytes.size()) {
    size_t size = 0;
    const Form form = FirstCharacter(bytes.substr(used), size);
    if (form == Form::kUnfinished && !is_end) return used;
    out.append(form == Form::kCharacter ? bytes.substr(used, size) : kReplacement);
    used += size;
  }
  return used;
}

}  // namespace tokenrouter
