#include "services/scheduler/request/request_registry.h"

#include <algorithm>

#include "libs/status/check.h"
#include "services/scheduler/request/side_commands.h"

namespace tokenrouter {

RequestMachine* RequestRegistry::Add(std::unique_ptr<RequestMachine> machine) {
  TR_CHECK(machine->origin().key == next_key_) << machine->origin().key << " vs " << next_key_;
  ++next_key_;
  RequestMachine* const added = machine.get();
  const bool fresh = by_identity_
                         .emplace(Identity(added->spec().request_id(), added->spec().choice()),
                                  added->origin().key)
                         .second;
  TR_CHECK(fresh) << "request " << added->spec().request_id() << " is live already";
  ++live_by_pair_[added->origin().pair];
  reserved_ids_ += ReservedIds(added->spec());
  FollowReading(*added);
  machines_.emplace(added->origin().key, std::move(machine));
  return added;
}

void RequestRegistry::Erase(uint64_t key) {
  const auto found = machines_.find(key);
  TR_CHECK(found != machines_.end()) << key;
  const RequestMachine& machine = *found->second;
  by_identity_.erase(Identity(machine.spec().request_id(), machine.spec().choice()));
  --live_by_pair_[machine.origin().pair];
  reserved_ids_ -= ReservedIds(machine.spec());
  reading_by_pair_[machine.origin().pair].erase(key);
  machines_.erase(found);
}

void RequestRegistry::FollowReading(const RequestMachine& machine) {
  auto& reading = reading_by_pair_[machine.origin().pair];
  if (HasReadPrompt(machine, machine.grant().role)) {
    reading.erase(machine.origin().key);
  } else {
    reading.insert(machine.origin().key);
  }
}

void RequestRegistry::Clear() {
  machines_.clear();
  reserved_ids_ = 0;
  by_identity_.clear();
  live_by_pair_.clear();
  reading_by_pair_.clear();
}

RequestMachine* RequestRegistry::Find(const std::string& request_id, uint32_t choice) const {
  const auto found = by_identity_.find(Identity(request_id, choice));
  return found == by_identity_.end() ? nullptr : Find(found->second);
}

int RequestRegistry::live(int pair) const {
  const auto found = live_by_pair_.find(pair);
  return found == live_by_pair_.end() ? 0 : found->second;
}

int RequestRegistry::reading(int pair) const {
  const auto found = reading_by_pair_.find(pair);
  return found == reading_by_pair_.end() ? 0 : static_cast<int>(found->second.size());
}

std::vector<uint64_t> RequestRegistry::Keys() const {
  std::vector<uint64_t> keys;
  keys.reserve(machines_.size());
  for (const auto& [key, machine] : machines_) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

void RequestRegistry::ForEach(const std::function<void(const RequestMachine&)>& visit) const {
  for (const auto& [key, machine] : machines_) visit(*machine);
}

}  // namespace tokenrouter
