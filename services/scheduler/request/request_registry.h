// RequestRegistry owns every live request and finds it by its number or by its identity
// (request_id, choice). Numbers are never reused within a term.
// Ownership: owns the machines; a pointer is valid until Erase or Clear.
// Threads: lives on the scheduler's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "services/scheduler/request/request_machine.h"

namespace tokenrouter {

// Ids that a request may grow to.
inline int64_t ReservedIds(const wire::GenerationSpec& spec) {
  return int64_t{spec.prompt_length()} + spec.stop().max_new_tokens();
}

class RequestRegistry {
 public:
  // The number that Add expects next.
  uint64_t next_key() const { return next_key_; }
  // REQUIRES: origin().key == next_key(), and Find(request_id, choice) is null.
  RequestMachine* Add(std::unique_ptr<RequestMachine> machine);
  void Erase(uint64_t key);
  // Forgets all requests; numbers are not reused.
  void Clear();

  // Null when there is no such request.
  RequestMachine* Find(uint64_t key) const {
    const auto found = machines_.find(key);
    return found == machines_.end() ? nullptr : found->second.get();
  }
  RequestMachine* Find(const std::string& request_id, uint32_t choice) const;

  int size() const { return static_cast<int>(machines_.size()); }
  // What they may grow to together.
  int64_t reserved_ids() const { return reserved_ids_; }
  // Live requests of a pair.
  int live(int pair) const;
  // Those of them whose side with the decode grant has yet to prefill the prompt, as of their last
  // row.
  int reading(int pair) const;
  // Updates reading(). To be called after a row, once the decode grant is where the row left it.
  void FollowReading(const RequestMachine& machine);
  // All numbers in ascending order, for work whose order must be deterministic.
  std::vector<uint64_t> Keys() const;
  void ForEach(const std::function<void(const RequestMachine&)>& visit) const;

 private:
  using Identity = std::pair<std::string, uint32_t>;

  uint64_t next_key_ = 1;
  absl::flat_hash_map<uint64_t, std::unique_ptr<RequestMachine>> machines_;
  absl::flat_hash_map<Identity, uint64_t> by_identity_;
  int64_t reserved_ids_ = 0;
  absl::flat_hash_map<int, int> live_by_pair_;
  absl::flat_hash_map<int, absl::flat_hash_set<uint64_t>> reading_by_pair_;
};

}  // namespace tokenrouter
