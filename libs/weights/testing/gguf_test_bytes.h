// GgufBytes builds GGUF files in memory for tests, well-formed or deliberately broken. It writes
// the given values without any check, and is independent of the reader.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tokenrouter {

class GgufBytes {
 public:
  template <typename T>
  GgufBytes& Put(T value) {
    const auto* raw = reinterpret_cast<const char*>(&value);
    data_.insert(data_.end(), raw, raw + sizeof(T));
    return *this;
  }
  GgufBytes& Text(std::string_view text) {
    Put<uint64_t>(text.size());
    data_.insert(data_.end(), text.begin(), text.end());
    return *this;
  }
  GgufBytes& Header(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    data_.insert(data_.end(), {'G', 'G', 'U', 'F'});
    return Put<uint32_t>(version).Put<uint64_t>(tensors).Put<uint64_t>(keys);
  }
  template <typename T>
  GgufBytes& Scalar(std::string_view key, uint32_t tag, T value) {
    return Text(key).Put<uint32_t>(tag).Put<T>(value);
  }
  GgufBytes& String(std::string_view key, std::string_view value) {
    return Text(key).Put<uint32_t>(8).Text(value);
  }
  GgufBytes& Array(std::string_view key, uint32_t tag, uint64_t count) {
    return Text(key).Put<uint32_t>(9).Put<uint32_t>(tag).Put<uint64_t>(count);
  }
  // Dimensions innermost first, as the format has them.
  GgufBytes& Tensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t tag,
                    uint64_t offset) {
    Text(name).Put<uint32_t>(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t size : dimensions) Put<uint64_t>(size);
    return Put<uint32_t>(tag).Put<uint64_t>(offset);
  }
  GgufBytes& PadTo(size_t alignment) {
    while (data_.size() % alignment != 0) data_.push_back('\0');
    return *this;
  }
  GgufBytes& Append(const GgufBytes& other) {
    data_.insert(data_.end(), other.data_.begin(), other.data_.end());
    return *this;
  }
  GgufBytes& Truncate(size_t size) {
    data_.resize(size);
    return *this;
  }
  size_t size() const { return data_.size(); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(data_)); }

 private:
  std::vector<char> data_;
};

}  // namespace tokenrouter
