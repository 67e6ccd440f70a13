// TR_CHECK ends the process when an invariant that this program itself must keep is broken.
// Failures of the environment (peers, input, disk, memory) are a Status instead. The message
// carries file, line, the condition and what is streamed in: TR_CHECK(free >= 0) << "pool " <<
// name.
#pragma once

#include <sstream>

namespace tokenrouter::internal {

// Collects the message; its destructor prints it to stderr and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Turns the streamed expression into void, so that both branches of the macro's ?: agree.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace tokenrouter::internal

#define TR_CHECK(condition)                          \
  (condition) ? (void)0                              \
              : ::tokenrouter::internal::Voidify() & \
                    ::tokenrouter::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()
