// What a message counts against the byte limits of a stream.
#pragma once

#include <cstddef>

namespace tokenrouter {

// Bytes on the wire; protobuf's memory is of the same order. Other types, in tests, count as they
// lie in memory.
template <typename Message>
size_t MessageBytes(const Message& message) {
  if constexpr (requires { message.ByteSizeLong(); }) {
    return message.ByteSizeLong();
  } else {
    return sizeof(message);
  }
}

}  // namespace tokenrouter
