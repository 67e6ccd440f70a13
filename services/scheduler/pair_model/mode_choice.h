// ModeChoice decides how a pair serves: routed, or large-only. It follows the better
// of the two by what was measured at such a load (service_rates.h) and, for what was not, by the
// plan's prediction. A prediction that it has reason to doubt is tried: the other mode comes into
// force until it has been measured. A load that grew is answered at once, one that fell when it has
// stayed there for a moment (requests that came together do not end together), a changed estimate
// with hysteresis (mode_controller.h). Until a load that came back has a plan again it is served as
// it was last.
// Threads: lives on the scheduler's loop. Cost: O(1) per call.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "libs/batching_model/mode_controller.h"
#include "services/scheduler/pair_model/service_rates.h"

namespace tokenrouter {

struct ModeChoiceOptions {
  ModeOptions hysteresis;
  // A load that has moved by this share is another one.
  double load_step = 0.2;
  absl::Duration fallen_for = absl::Seconds(1);
  // What is believed of the other mode is in doubt where the mode in force makes less than the fair
  // share of what was predicted of it; where the other mode would be better by enough if the near
  // share were all that is promised of what it would really do, since a trial costs next to nothing
  // then; and, where evidence still lacks after so many windows, where it would be better if steps
  // took less than predicted by as much as the curves are uncertain. As long as the other mode was
  // measured in fewer windows than that, and made a fair share, the second reason holds on.
  double fair_share = 0.6;
  double near_share = 0.9;
  int patient_windows = 4;
  // Above this uncertainty evidence lacks: the mode is left alone but for trials.
  double most_uncertainty = 0.15;
  // A mode that is tried has so long to be measured.
  absl::Duration most_trial = absl::Minutes(1);
  // Under large-only service it is not seen how often the algorithm would route, so a
  // request follows its algorithm until it first routes. It takes a step of the small model for
  // every token, some tenths of a second in all: so often at most, and one request in so many.
  absl::Duration probe_interval = absl::Seconds(10);
  int64_t requests_per_probe = 64;
};

// What the plan says of a load.
struct PlannedLoad {
  int32_t requests = 0;  // 0: there is no plan for it.
  ModePrediction prediction;
};

class ModeChoice {
 public:
  explicit ModeChoice(const ModeChoiceOptions& options) : options_(options) {}

  // Tokens of any request, by any author.
  void Commit(int64_t tokens) { rates_.Commit(tokens); }
  // See ServiceRates.
  void Begin() { rates_.Begin(); }
  void Expect(int32_t reading, double answer_tokens) { rates_.Expect(reading, answer_tokens); }
  // At every tick and with every new plan. `plan`: for a load like `live`, its step times known up
  // to the relative error `uncertainty`.
  void Follow(int32_t live, const PlannedLoad& plan, double uncertainty, absl::Time now);
  // Whether that is evidence enough.
  bool Sure(double uncertainty) const { return uncertainty <= options_.most_uncertainty; }

  ServiceMode mode() const { return state_.mode; }
  uint64_t switches() const { return switches_; }
  const ServiceRates& rates() const { return rates_; }
  // Whether the caller's request, of all that large-only service would keep or take, should follow
  // its algorithm after all to see what it does. Counts the requests that ask.
  bool TakeProbe(absl::Time now);
  // What TakeProbe would say; counts nothing.
  bool ProbeDue(absl::Time now) const {
    return now - probed_at_ >= options_.probe_interval &&
           unprobed_ + 1 >= options_.requests_per_probe;
  }

 private:
  ServiceMode Other() const;
  // Whether `load` is lower than the one decided for, and has not been for long.
  bool FallsNow(int32_t load, absl::Time now);
  ModeState Next(const PlannedLoad& plan, double uncertainty, absl::Time now);
  bool Doubts(const PlannedLoad& plan, double uncertainty) const;
  // Whether the other mode would be better by enough if what is promised of it were only `share` of
  // what it does.
  bool MayBeBetter(const PlannedLoad& plan, double share) const;

  const ModeChoiceOptions options_;
  ServiceRates rates_;
  ModeState state_;
  int32_t load_ = 0;                             // That it was decided for.
  absl::Time fell_at_ = absl::InfiniteFuture();  // The load has been lower since.
  // The mode in force, until it is measured by one window more, or then.
  bool on_trial_ = false;
  int tried_windows_ = 0;
  absl::Time tried_until_;
  // How loads of a size were served last.
  std::optional<ServiceMode> served_[ServiceRates::kSizes];
  uint64_t switches_ = 0;
  absl::Time probed_at_ = absl::InfinitePast();
  int64_t unprobed_ = 0;  // Requests that have asked since.
};

}  // namespace tokenrouter
