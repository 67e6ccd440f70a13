// SchedulerPort is the scheduler as the front ends need it: start a generation, acknowledge what
// the client has received, end it. The real one is SchedulerLink; tests script their own.
// Ownership: a sink is shared until its last event. Threads: all methods are thread-safe and never
// block; sinks are called on the port's thread, in order, and must not block. Errors: reach the
// sink as the last event.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "services/gateway/link/scheduler_link_core.h"

namespace tokenrouter {

class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  virtual void OnEvent(LinkEvent event) = 0;
};

struct PortHealth {
  bool up = false;        // A stream is open and was welcomed.
  std::string trouble;    // Why it is down.
  wire::PairStatus pair;  // Workers are 0 while down; the rest is as last received.
};

class SchedulerPort {
 public:
  virtual ~SchedulerPort() = default;
  // Returns the handle for the calls below; 0 when the port is stopping or overloaded: nothing
  // follows.
  virtual uint64_t Submit(wire::GenerationSpec spec, std::vector<int32_t> ids,
                          std::shared_ptr<GenerationSink> sink) = 0;
  virtual void Acknowledge(uint64_t handle, int32_t position) = 0;
  // After these two the sink receives no further events.
  virtual void Cancel(uint64_t handle) = 0;
  virtual void Finish(uint64_t handle, wire::Finish finish) = 0;
  virtual PortHealth Health() const = 0;
};

}  // namespace tokenrouter
