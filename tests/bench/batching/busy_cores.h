// Keeps every core busy at the lowest priority, like a machine on which the models compute on the
// same processors. Ownership: owns its child processes; the destructor kills them. Threads: one.
#pragma once

#include <sys/types.h>

#include <vector>

namespace tokenrouter {

class BusyCores {
 public:
  // One spinning child per core.
  BusyCores();
  ~BusyCores();
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;

 private:
  std::vector<pid_t> children_;
};

}  // namespace tokenrouter
